-- Rules A9 for nodes.parquet.

CREATE TABLE sides AS FROM nodes JOIN machine USING (rank);

-- A9 nodes
SELECT '(all)' AS id, (SELECT list_sort(list(rank)) FROM nodes) <> (SELECT list_sort(list(rank)) FROM machine)
    AS wrong, 'the nodes are not the ranks of the cluster';

-- A9 nodes
SELECT '(all)' AS id, host <> m_host AS wrong,
    'rank ' || rank || ' has host ' || q(host) || ' instead of ' || q(m_host)
FROM sides;

-- A9 nodes
SELECT '(all)' AS id, list_sort(coalesce(properties, [])) <> m_properties AS wrong,
    'rank ' || rank || ' has other properties than in the cluster' FROM sides;

-- A9 nodes
SELECT '(all)' AS id, usable AND NOT up AS wrong,
    'rank ' || rank || ' is not up, but it is in the cluster' FROM sides;
