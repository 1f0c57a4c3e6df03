"""Jobs in a run: their columns (`prepare`), states (`lifecycle`) and conditions (`conditions`)."""
