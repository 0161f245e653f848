# label: full; timeout: 400, not under sanitizers (MPI keeps what it took)
# Trouble in a mesh: a rank of any axis that is killed or stopped ends all others in time, and the
# message names its stage, replica and shard, and what it was doing. Sixteen ranks finish, however few
# cores there are, with the bits of one. Ranks and moments by chance: test_stage_trouble_all.sh.
. "$SOURCE/tests/support/stage_trouble.sh"

settings fp32 2 1f1b 2 "" '"shard_size": 2, "collective_timeout": 20'
for rank in 0 3 6; do
    case="rank $rank killed"
    start
    lose $rank KILL
done
settings fp32 2 zb-h1 3 "" '"shard_size": 2, "collective_timeout": 4'
case="rank 5 stopped"
start
lose 5 STOP

like_one tied fp32 4 4 1f1b 3 "" '"shard_size": 2'
