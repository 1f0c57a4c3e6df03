"""The known keys of slurm.conf(5) and its relatives: of nodes, of partitions, and of the whole cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.errors import clip, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from simsched.formats.machines.description import NoteCollector
    from simsched.formats.machines.slurm.notation import Line


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
