# Sourced by tests under a Slurm of their own, after ranks.sh: `nodes N` makes nodes h1, h2 … of
# namespaces.sh into nodes of Debian's slurm-wlm, each with a host name, /tmp and /dev/shm of its
# own. All of it, its processes too, goes with the test's namespace. Where control groups of version
# 1 can be made, --mem acts and $groups is the folder of the nodes' groups; else it is "".
for program in slurmctld slurmd srun sbatch scontrol munged runuser; do
    PATH=$PATH:/usr/sbin command -v $program >/dev/null && continue
    echo "skipped: Slurm: no $program here (slurm-wlm, slurm-wlm-basic-plugins and munge have it)"
    exit 77
done
[ -r /etc/munge/munge.key ] || { echo "skipped: Slurm: munge has no key here" && exit 77; }
. "$SOURCE/tests/support/namespaces.sh"
unset TMPDIR HYDRA_LAUNCHER HYDRA_LAUNCHER_EXEC OMPI_MCA_plm_rsh_agent # ranks start by Slurm
PATH=$PATH:/usr/sbin

groups=/sys/fs/cgroup/memory/sifr-slurm
make_groups() { # COUNT: those of a test that was killed go first; one that runs keeps its own
    remove_groups 2>/dev/null || :
    mkdir "$groups" 2>/dev/null && [ -e "$groups/memory.limit_in_bytes" ] || groups=
    [ ! "$groups" ] || (cd "$groups" && seq -f h%g "$1" | xargs mkdir)
}
remove_groups() {
    [ ! -d "$groups" ] || find "$groups" -depth -type d -exec rmdir {} +
}
# All processes here but this one end first: they hold the groups.
end_nodes() {
    kill -KILL -1 2>/dev/null || :
    wait
    [ ! "$groups" ] || for _ in $(seq 50); do
        remove_groups 2>/dev/null && break || sleep 0.1
    done
}
trap end_nodes EXIT

nodes() { # COUNT
    local i
    make_groups "$1"
    mkdir -p slurm/state /run/munge
    chown munge: /run/munge
    hosts "$1"
    echo "10.77.0.254 $(hostname)" >>hosts.all
    ip addr add 10.77.0.254/24 dev bridge
    export SLURM_CONF=$PWD/slurm/slurm.conf
    cat >$SLURM_CONF <<END
ClusterName=soak
SlurmctldHost=$(hostname)(10.77.0.254)
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$PWD/slurm/state
SlurmdSpoolDir=$PWD/slurm/spool-%n
SlurmctldPidFile=$PWD/slurm/ctl.pid
SlurmdPidFile=$PWD/slurm/%n.pid
SlurmctldLogFile=$PWD/slurm/ctl.log
SlurmdLogFile=$PWD/slurm/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/$([ "$groups" ] && echo cgroup || echo none)
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_interval=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
RequeueExit=143
PartitionName=all Nodes=h[1-$1] Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=60
PartitionName=first Nodes=h[1-$1] MaxTime=INFINITE State=UP PriorityTier=10
END
    for i in $(seq "$1"); do echo "NodeName=h$i NodeAddr=10.77.0.$i CPUs=8 RealMemory=8000"; done >>$SLURM_CONF
    printf '%s\n' CgroupPlugin=cgroup/v1 CgroupAutomount=no ConstrainRAMSpace=yes >slurm/cgroup.conf
    runuser -u munge -- munged --force
    slurmctld -c
    for i in $(seq "$1"); do
        mkdir slurm/spool-h$i
        # Not by `ip netns exec`: its new /sys has no control groups, and slurmd does not start.
        nsenter --net="/run/netns/h$i" unshare --uts --mount sh -ec "hostname h$i
            mount -t tmpfs none /dev/shm
            mount --bind $PWD /mnt # which may lie in /tmp
            mount -t tmpfs none /tmp
            mkdir -p $PWD
            mount --bind /mnt $PWD
            cd $PWD
            [ ! '$groups' ] || mount --bind '$groups/h$i' /sys/fs/cgroup/memory
            exec slurmd -N h$i"
    done
    for i in $(seq 100); do
        [ "$(sinfo -h -t idle -o %D -p all)" = "$1" ] && return
        sleep 0.2
    done
    tail -n 20 slurm/*.log >&2
    fail "no $1 nodes are there after 20 s"
}
state_of() { scontrol -o show job "$1" | sed -n 's/.* JobState=\([A-Z_]*\).*/\1/p'; }
until_state() { # JOB STATES SECONDS
    local i
    for i in $(seq $(($3 * 5))); do
        case " $2 " in *" $(state_of "$1") "*) return ;; esac
        sleep 0.2
    done
    tail -n 10 slurm/ctl.log *.log >&2
    fail "job $1: $(state_of "$1"), not $2, after $3 s"
}
