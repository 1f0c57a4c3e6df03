"""slurm.conf and its relatives as lines of keys: comments, continuations, quotes, included files.

The known keys of slurm.conf(5) are those of nodes, of partitions, and of the whole cluster.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from simsched.errors import LimitError, SimschedError, clip, nearest
from simsched.formats.machines.slurm.notation import Line
from simsched.formats.text.decompression import MAX_TEXT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from simsched.formats.machines.description import NoteCollector


MAX_DEPTH = 8
"""Includes within includes."""
MAX_FILES = 200
"""The most files that one configuration may include."""

_COMMENT = re.compile(r"(?<!\\)#.*")
_UNQUOTED = re.compile(r'\A((?:[^"#\\]|\\.|"[^"]*")*+)#.*')
_PAIR = re.compile(r'\s*+([A-Za-z0-9_.]++)\s*+[-+*/]?=\s*(?:"([^"]*)"|(\S+))?(?=\s|\Z)')
_WORD = re.compile(r"\s*(\S+)")
_INCLUDE = re.compile(r"\s*include\s+(\S.*?)\s*\Z", re.IGNORECASE)
_ESCAPE = re.compile(r"\\(.)")


class ConfigFiles:
    """The lines of a configuration with those of its included files at their places.

    first : the name of the first file for messages.
    open_file : returns the text of a file by its name relative to the first one; None: there are none.
    """

    def __init__(self, notes: NoteCollector, first: str, open_file: Callable[[str], str] | None) -> None:
        self._notes = notes
        self._open = open_file
        self._opened = 0
        self._characters = 0
        self._folder = PurePosixPath(first).parent
        self._cluster = ""

    def place(self, name: str) -> str:
        """Return the path of a file for messages; names are relative to the first file."""
        return str(self._folder / name)

    def neighbour(self, name: str) -> str | None:
        """Return the text of a file beside the first; None if there is none."""
        if self._open is None:
            return None
        try:
            return self._text(self._open(name))
        except LimitError as error:
            self._notes.fault(f"{name} was not read: {error.message}", self.place(name), error.expected)
        except (SimschedError, OSError, LookupError):
            return None
        return None

    def lines(self, text: str, where: str, above: tuple[str, ...] = ()) -> Iterator[Line]:
        """Yield the lines of a text; an Include is replaced by the lines of the file."""
        for number, line in _logical_lines(text):
            place = f"{where}:{number}"
            include = _INCLUDE.fullmatch(line)
            if include is not None and "=" not in line.split()[0]:
                name = include[1].strip('"').replace("%c", self._cluster)  # as Slurm does
                yield from self._included(name, place, above)
                continue
            values = self._pairs(line, place)
            if values:
                self._cluster = values.get("clustername", self._cluster).lower()
                yield Line(values, place)

    def _included(self, name: str, place: str, above: tuple[str, ...]) -> Iterator[Line]:
        """Yield the lines of an included file; a note says why it is not read."""
        if self._open is None:
            self._notes.left_out(f"the included file {clip(name)} was not read", place)
        elif any(mark in name for mark in "*?["):
            reason = "Slurm does not read patterns and skips this line"
            self._notes.fault(f"Include {clip(name)}: {reason}", place, "the name of a file")
        elif name in above:
            self._notes.fault(f"Include {clip(name)}: the file includes itself", place, "no cycle")
        elif len(above) >= MAX_DEPTH or self._opened >= MAX_FILES:
            expected = f"at most {MAX_DEPTH} levels and {MAX_FILES} files"
            self._notes.fault(f"Include {clip(name)}: too many includes", place, expected)
        else:
            self._opened += 1
            beside = name.rpartition("/")[2]
            text: str | None
            try:
                text = self._text(self._open(name))
            except (SimschedError, OSError, LookupError) as error:
                # A site's configuration is often read elsewhere, where /etc/slurm has other files or none:
                # then the file of the same name beside the first one counts.
                text = self.neighbour(beside) if beside != name else None
                if text is not None:
                    self._notes.assumed(f"Include {clip(name)}: the file {clip(beside)} here was read", place)
                else:
                    reason = error.message if isinstance(error, SimschedError) else "it cannot be opened"
                    self._notes.fault(f"Include {clip(name)}: {reason}", place, "a file beside this one")
            if text is not None:
                yield from self.lines(text, self.place(name), (*above, name))

    def _text(self, text: str) -> str:
        """Return a text of a file; LimitError for too large ones together."""
        self._characters += len(text)
        if self._characters > MAX_TEXT:
            raise LimitError("the files are too large together", expected=f"at most {MAX_TEXT:,} characters")
        return text

    def _pairs(self, line: str, place: str) -> dict[str, str]:
        """Return the keys of a line; a word that is not KEY=VALUE is a fault, and the rest is kept."""
        values: dict[str, str] = {}
        at = 0
        while at < len(line):
            pair = _PAIR.match(line, at)
            if pair is None:
                word = _WORD.match(line, at)
                assert word is not None  # the line has no blanks at its end
                self._notes.fault(f"{clip(word[1])!r} is not KEY=VALUE", place, cause="not KEY=VALUE")
                at = word.end()
                continue
            value = pair[2] if pair[2] is not None else pair[3] or ""
            values[pair[1].lower()] = _ESCAPE.sub(r"\1", value) if "\\" in value else value
            at = pair.end()
        return values


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield (number of the first line, text) without comments and blanks at the end, continuations joined.

    As in Slurm, a comment is removed before a backslash at the end of the line is looked for, and the next
    line follows without a space: a value may go on there.
    """
    kept, first = "", 0
    for number, line in enumerate(text.split("\n"), 1):
        if "#" in line:  # a comment begins with one that is neither escaped nor between quotation marks
            line = _UNQUOTED.sub(r"\1", line, count=1) if '"' in line else _COMMENT.sub("", line)  # noqa: PLW2901
        bare = line.rstrip()
        first = first or number
        if bare.endswith("\\"):
            kept += bare[:-1]
            continue
        whole = (kept + bare).strip()
        if whole:
            yield first, whole
        kept, first = "", 0
    if kept.strip():
        yield first, kept.strip()


UNKNOWN = "unknown key"
"""The cause of the faults of keys that Slurm does not have."""

_NODE_KEYS = """
    NodeName BcastAddr Boards CoreSpecCount CoresPerSocket CPUs CPUSpecList CpuBind Feature Features Gres
    GresConf MemSpecLimit NodeAddr NodeHostname Parameters Port Procs RealMemory Reason RestrictedCoresPerGPU
    Sockets SocketsPerBoard State SuspendTime ThreadsPerCore TmpDisk Topology TRESWeights Weight
"""

_PARTITION_KEYS = """
    PartitionName AllocNodes AllowAccounts AllowGroups AllowQos Alternate CpuBind DefCPUPerGPU DefMemPerCPU
    DefMemPerGPU DefMemPerNode Default DefaultTime DenyAccounts DenyQos DisableRootJobs ExclusiveUser
    ExclusiveTopo Exclusive GraceTime Hidden LLN MaxCPUsPerNode MaxCPUsPerSocket MaxMemPerCPU MaxMemPerNode
    MaxTime MaxNodes MinNodes Nodes OverSubscribe OverTimeLimit PowerDownOnIdle PreemptMode Priority
    PriorityJobFactor PriorityTier QOS RootOnly ReqResv ResumeTimeout SelectTypeParameters Shared State
    SuspendTime SuspendTimeout Topology TRESBillingWeights
"""

_GLOBAL_KEYS = """
    AccountingStorageBackupHost AccountingStorageEnforce AccountingStorageExternalHost
    AccountingStorageHost AccountingStorageLoc AccountingStorageParameters AccountingStoragePass
    AccountingStoragePort AccountingStorageTRES AccountingStorageType AccountingStorageUser
    AccountingStoreFlags AccountingStoreJobComment AcctGatherEnergyType AcctGatherFilesystemType
    AcctGatherInfinibandType AcctGatherInterconnectType AcctGatherNodeFreq AcctGatherProfileType
    AllowSpecResourcesUsage AuthAltParameters AuthAltTypes AuthInfo AuthType BackupAddr BackupController
    BatchStartTimeout BcastExclude BcastParameters BurstBufferParameters BurstBufferType CacheGroups
    CertgenParameters CertgenType CertmgrParameters CertmgrType CheckpointType CliFilterParameters
    CliFilterPlugins ClusterName CommunicationParameters CompleteWait ControlAddr ControlMachine
    CoreSpecPlugin CpuFreqDef CpuFreqGovernors CredType CryptoType DataParserParameters DebugFlags
    DefCPUPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode DefRuntimePlugin DependencyParameters
    DisableRootJobs EioTimeout EnforcePartLimits Epilog EpilogMsgTime EpilogSlurmctld EpilogTimeout
    ExtSensorsFreq ExtSensorsType FairShareDampeningFactor FastSchedule FederationParameters FirstJobId
    GetEnvTimeout GpuFreqDef GresTypes GroupUpdateForce GroupUpdateTime HashPlugin HealthCheckInterval
    HealthCheckNodeState HealthCheckProgram HealthCheckTimeout HttpParserType InactiveLimit Include
    InteractiveStepOptions JobAcctGatherFrequency JobAcctGatherParams JobAcctGatherType JobCheckpointDir
    JobCompHost JobCompLoc JobCompParams JobCompPass JobCompPassScript JobCompPort JobCompType
    JobCompUser JobContainerType JobCredentialPrivateKey JobCredentialPublicCertificate JobFileAppend
    JobRequeue JobSubmitPlugins KeepAliveTime KillOnBadExit KillWait LaunchParameters LaunchType
    LicenseParameters Licenses LogTimeFormat MailDomain MailProg MaxArraySize MaxBatchRequeue MaxDBDMsgs
    MaxJobCount MaxJobId MaxMemPerCPU MaxMemPerNode MaxNodeCount MaxStepCount MaxTasksPerNode
    MCSParameters MCSPlugin MemLimitEnforce MessageTimeout MetricsAuthUsers MetricsParameters
    MetricsType MinJobAge MpiDefault MpiParams NamespaceType NodeFeaturesPlugins OverTimeLimit PluginDir
    PlugStackConfig PowerAction PowerParameters PowerPlugin PreemptExemptTime PreemptMode
    PreemptParameters PreemptType PrEpParameters PrEpPlugins PriorityCalcPeriod PriorityDecayHalfLife
    PriorityFavorSmall PriorityFlags PriorityMaxAge PriorityParameters PrioritySiteFactorParameters
    PrioritySiteFactorPlugin PriorityType PriorityUsageResetPeriod PriorityWeightAge PriorityWeightAssoc
    PriorityWeightFairshare PriorityWeightJobSize PriorityWeightPartition PriorityWeightQOS
    PriorityWeightTRES PrivateData ProctrackType Prolog PrologEpilogTimeout PrologFlags PrologSlurmctld
    PrologTimeout PropagatePrioProcess PropagateResourceLimits PropagateResourceLimitsExcept
    RebootProgram ReconfigFlags RequeueExit RequeueExitHold ResumeFailProgram ResumeProgram ResumeRate
    ResumeTimeout ResvEpilog ResvOverRun ResvProlog ReturnToService RoutePlugin SallocDefaultCommand
    SbcastParameters SchedulerAuth SchedulerParameters SchedulerPort SchedulerRootFilter
    SchedulerTimeSlice SchedulerType ScronParameters SelectType SelectTypeParameters
    SerializerParameters SerializerPlugins SlurmctldAddr SlurmctldDebug SlurmctldHost
    SlurmctldHttpAuthParameters SlurmctldLogFile SlurmctldParameters SlurmctldPidFile SlurmctldPlugstack
    SlurmctldPort SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg SlurmctldSyslogDebug SlurmctldTimeout
    SlurmdDebug SlurmdHttpAuthParameters SlurmdLogFile SlurmdParameters SlurmdPidFile SlurmdPort
    SlurmdSpoolDir SlurmdSyslogDebug SlurmdTimeout SlurmdUser SlurmrestdHttpAuthParameters
    SlurmrestdParameters SlurmSchedLogFile SlurmSchedLogLevel SlurmstepdParameters SlurmUser SrunEpilog
    SrunPortRange SrunProlog StateSaveLocation SuspendExcNodes SuspendExcParts SuspendExcStates
    SuspendProgram SuspendRate SuspendTime SuspendTimeout SwitchParameters SwitchType TaskEpilog
    TaskPlugin TaskPluginParam TaskProlog TCPTimeout TLSParameters TLSType TmpFS TopologyParam
    TopologyPlugin TrackWCKey TreeWidth UnkillableStepProgram UnkillableStepTimeout UrlParserType UsePAM
    UseSpecResources VSizeFactor WaitTime X11Parameters
"""
# Keys of the whole cluster, of all versions since 15.08; most of them do not affect the schedule.

_GRES_KEYS = """
    NodeName Name Type Count Cores CPUs File MultipleFiles Flags Links AutoDetect
"""


def refuse_unknown(line: Line, known: Mapping[str, str], notes: NoteCollector) -> None:
    """Note each key that Slurm does not have here, with the nearest one that it has.

    known : the keys in lower case → as Slurm's manual writes them, from `by_lower`.
    """
    for key in line.values:
        if key not in known:
            meant = nearest(key, known) if notes.has_room(UNKNOWN) else None  # the search is expensive
            hint = f"; did you mean {known[meant]}?" if meant else ""
            notes.fault(f"unknown key {clip(key)!r}{hint}", line.where, cause=UNKNOWN)


def by_lower(names: Iterable[str]) -> dict[str, str]:
    """Return the names by their form in lower case.

    >>> by_lower(["MaxTime"])
    {'maxtime': 'MaxTime'}
    """
    return {name.lower(): name for name in names}


NODE, PARTITION = by_lower(_NODE_KEYS.split()), by_lower(_PARTITION_KEYS.split())
GLOBAL, GRES = by_lower(_GLOBAL_KEYS.split()), by_lower(_GRES_KEYS.split())
NODE_SET, DOWN_NODES = by_lower(("NodeSet", "Nodes", "Feature")), by_lower(("DownNodes", "State", "Reason"))
SWITCH = by_lower(("SwitchName", "Switches", "Nodes", "LinkSpeed"))
BLOCK = by_lower(("BlockName", "Nodes", "BlockSizes"))
