# label: soak
# All of pipeline stages: stages 2 and 4, 1 and 2 ranks each, ZeRO 0 to 3, fp32 and bf16, every
# schedule, with and without recomputation, on models with and without tied weights and dropout, gives
# the bits and figures of one rank. Of Gemma 4, also with shared keys and values, LFM2 and Qwen3.5 each
# two of these values meet.
# test_stage_runs.sh has a part of it for each day.
# timeout: 2400, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/stage_runs.sh"
for model in untied tied gpt2; do
    for precision in fp32 bf16; do
        for stages in 2 4; do
            for ranks in 1 2; do
                for zero in 0 1 2 3; do
                    for schedule in gpipe 1f1b interleaved zb-h1; do
                        like_one $model $precision $stages $ranks $schedule $zero
                    done
                    like_one $model $precision $stages $ranks 1f1b $zero \
                        '"activation_checkpoint_interval": 1'
                done
            done
        done
    done
done
for ranks in 1 2; do
    for zero in 0 1 2 3; do like_one gpt2 fp16 2 $ranks 1f1b $zero; done
done

# Layers of two kinds: stages, ranks, stages of ZeRO and schedules take turns.
schedules=(gpipe 1f1b interleaved zb-h1) recompute='"activation_checkpoint_interval": 1'
for model in gemma4 gemma4_shared lfm2 qwen3_5; do
    for ((zero = 0; zero < 4; zero++)); do
        for ((s = 0; s < 4; s++)); do
            n=$(((zero + s) % 4))
            precision=fp32 more=
            [ $((n % 2)) = 0 ] || precision=bf16
            [ ${schedules[$s]} != 1f1b ] || more=$recompute
            like_one $model $precision $((2 + 2 * (n / 2))) $((1 + (zero / 2 + s) % 2)) ${schedules[$s]} \
                $zero "$more"
        done
    done
done
