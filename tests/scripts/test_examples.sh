# label: full
# The examples for Slurm and Kubernetes: sound as files, and what they start runs. srun is played by
# a script; mpirun is the real one.
# not under sanitizers (MPI keeps what it took), timeout: 120
. "$SOURCE/tests/support/ranks.sh"
shellcheck "$SOURCE/examples/slurm.sh" >out 2>&1 || fail "slurm.sh: see shellcheck"
tiny_model
mkdir bin
ln -s "$SIFR" bin/sifr
cat >bin/srun <<'END'
#!/bin/sh
echo "$*" >srun.line
while case $1 in --*) true ;; *) false ;; esac do shift; done
exec "$@"
END
chmod +x bin/srun
export PATH=$PWD/bin:$PATH
for save in 1 2; do # once from the start, once with --resume and nothing left to do
    SLURM_SUBMIT_DIR=$PWD SLURM_CPUS_PER_TASK=1 MODEL=model DATA=text OUTPUT=slurm-run \
        CONFIG=ds.json "$SOURCE/examples/slurm.sh" >out 2>err || fail "slurm.sh: exit code $?"
    [ -s slurm-run/model.safetensors ] || fail "slurm.sh: no model"
done
for option in --mpi=pmix --kill-on-bad-exit=1 --wait=0; do
    grep -q -e "$option" srun.line || fail "srun did not get $option"
done
grep -q '^#SBATCH --signal=TERM@' "$SOURCE/examples/slurm.sh" || fail "no time to save"
grep -q '^#SBATCH --open-mode=append' "$SOURCE/examples/slurm.sh" || fail "a requeue empties the log"

python3 - "$SOURCE/examples/kubernetes.yaml" >command <<'END' || fail "kubernetes.yaml"
import sys, yaml
job, = yaml.safe_load_all(open(sys.argv[1]))
assert job["apiVersion"] == "kubeflow.org/v2beta1" and job["kind"] == "MPIJob"
replicas = job["spec"]["mpiReplicaSpecs"]
grace = set()
for kind in ("Launcher", "Worker"):
    pod = replicas[kind]["template"]["spec"]
    grace.add(pod["terminationGracePeriodSeconds"])
    volumes = {volume["name"] for volume in pod["volumes"]}
    for container in pod["containers"]:
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
launcher = replicas["Launcher"]["template"]["spec"]["containers"][0]
words = launcher["command"] + launcher["args"]
assert 2 * int(words[words.index("odls_base_sigkill_timeout") + 1]) < min(grace)
print("\n".join(words))
END
[ ! "$mpich" ] || exit 0 # its options are Open MPI's
mkdir run
cp -r model run/model
cp text run/data
cp ds.json run/config.json
sed "s|=/run/|=$PWD/run/|" command >local
mapfile -t words <local
[ "${words[0]}" = mpirun ] || fail "kubernetes.yaml does not start mpirun"
timeout 100 ${launcher%% *} -n 2 "${words[@]:1}" >out 2>err || fail "its command: exit code $?"
[ -s run/out/model.safetensors ] || fail "kubernetes.yaml: no model"
grep -q '2 ranks' out || fail "kubernetes.yaml: not two ranks"
