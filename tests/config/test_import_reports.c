/* Where other programs send a run's figures, and what of that an imported config does. */
#include "config/import_wanted.h"

#define USUAL "\"lr_scheduler_type\": \"linear\""

static void names_of_the_trainer(void **state) {
    (void)state;
    makes("output_dir: o\nreport_to: tensorboard\n",
          "{\"sifr\": {\"output\": \"o\", " USUAL "}, \"tensorboard\": {\"enabled\": true, "
          "\"output_path\": \"o\", \"job_name\": \"runs\"}}",
          0);
    makes("output_dir: o\nreport_to: [mlflow, tensorboard]\nlogging_dir: logs/a\n",
          "{\"sifr\": {\"output\": \"o\", \"mlflow\": true, " USUAL "}, \"tensorboard\": "
          "{\"enabled\": true, \"output_path\": \"logs/a\", \"job_name\": \"\"}}",
          0);
    says("output_dir: o\nreport_to: [mlflow, tensorboard]\nlogging_dir: logs/a\n",
         "logging_dir = \"logs/a\": tensorboard.output_path\n");
    says("logging_dir: logs/a\noutput_dir: o\nreport_to: tensorboard\n",
         "logging_dir = \"logs/a\": tensorboard.output_path\n");
    says("output_dir: o\nreport_to: mlflow\nlogging_dir: logs/a\n",
         "logging_dir = \"logs/a\": no effect here: report_to does not name tensorboard\n");
    for (int i = 0; i < 3; i++)
        makes((const char *const[]){"output_dir: o\nreport_to: none\n",
                                    "output_dir: o\nreport_to: []\n",
                                    "output_dir: o\nreport_to: [none]\n"}[i],
              "{\"sifr\": {\"output\": \"o\", " USUAL "}}", 0);
    static const char all[] =
        "output_dir: o\nreport_to: [wandb, comet_ml, swanlab, trackio, all]\n";
    says(all, "report_to = \"wandb\": no effect here: its package reads metrics.jsonl "
              "(docs/monitoring.md)\n");
    says(all, "report_to = \"comet_ml\": no effect here: its package reads metrics.jsonl ");
    says(all, "report_to = \"swanlab\": no effect here: `swanlab convert` reads the files of ");
    says(all, "report_to = \"trackio\": no effect here: trackio.import_tf_events reads the ");
    says(all, "report_to = \"all\": no effect here: what is installed there is not known here; ");
    says("output_dir: o\nreport_to: neptune\n",
         "report_to = \"neptune\": not taken over: reports go to the output folder (supported "
         "beside it: tensorboard, mlflow)\n");
    says("output_dir: o\nreport_to: 7\n", "report_to = 7: not taken over: reports go to the");
    /* No message shows a token. */
    says("output_dir: o\nhub_token: hf_s3cr3t\n", "hub_token = \"…\": ");
    says("output_dir: o\npush_to_hub_token: hf_s3cr3t\n", "push_to_hub_token = \"…\": ");
    says("output_dir: o\nreport_to: [\"http://u:s3cr3t@h\"]\n", "report_to = \"…\": ");
    says("output_dir: o\nrun_name: r\n",
         "run_name = \"r\": no effect here: reports have the name of the output folder\n");
}

/* A section of DeepSpeed's says itself where its files go. */
static void beside_a_deepspeed_config(void **state) {
    (void)state;
    makes("output_dir: o\ndeepspeed: {tensorboard: {enabled: false, output_path: logs}}\n"
          "report_to: tensorboard\n",
          "{\"sifr\": {\"output\": \"o\", " USUAL "}, \"tensorboard\": {\"enabled\": true, "
          "\"output_path\": \"logs\"}}",
          0);
    says("output_dir: o\ndeepspeed: {tensorboard: {enabled: true, output_path: logs}}\n"
         "report_to: tensorboard\nlogging_dir: others\n",
         "logging_dir = \"others\": no effect here: tensorboard.output_path is given\n");
}

#define AXOLOTL                                                                                    \
    "base_model: m\nadapter: null\ndatasets: [{path: a.jsonl, type: alpaca}]\n"                    \
    "output_dir: o\nmicro_batch_size: 1\n"

static void keys_of_axolotl(void **state) {
    (void)state;
    static const char sent[] = AXOLOTL "use_mlflow: true\nhf_mlflow_log_artifacts: true\n"
                                       "mlflow_tracking_uri: http://host:5000\n"
                                       "mlflow_run_name: n\nuse_tensorboard: true\n";
    says(sent, "use_mlflow = true: sifr.mlflow\n");
    says(sent, "hf_mlflow_log_artifacts = true: sifr.mlflow_artifacts \"model\", when the run ");
    says(sent, "mlflow_tracking_uri = \"http://host:5000\": not taken over: the environment says "
               "it: set MLFLOW_TRACKING_URI to it\n");
    says(sent, "mlflow_run_name = \"n\": no effect here: reports have the name of the output ");
    says(sent, "use_tensorboard = true: tensorboard.enabled\n");
    static const char by_name[] = AXOLOTL "mlflow_experiment_name: e\n"
                                          "hf_mlflow_log_artifacts: true\n";
    says(by_name, "mlflow_experiment_name = \"e\": sifr.mlflow; the name: set "
                  "MLFLOW_EXPERIMENT_NAME to it\n");
    says(by_name, "hf_mlflow_log_artifacts = true: sifr.mlflow_artifacts \"model\"");
    says(AXOLOTL "hf_mlflow_log_artifacts: true\n",
         "hf_mlflow_log_artifacts = true: no effect here: without use_mlflow nothing is sent\n");
}

/* An address may have a password. */
static void no_password_is_shown(void **state) {
    (void)state;
    import_case c = import(AXOLOTL "mlflow_tracking_uri: https://me:s3cr3t@host\n");
    assert_int_equal(c.status, SIFR_OK);
    assert_non_null(strstr(c.lines, "mlflow_tracking_uri = \"…\": not taken over: "));
    assert_null(strstr(c.lines, "s3cr3t"));
    json_decref(c.made.config);
    refuses(AXOLOTL "mlflow_tracking_url: http://host\n",
            "a.yaml: no counterpart is known of 1 key of an axolotl config (axolotl 0.19.0): "
            "mlflow_tracking_url = \"http://host\" (did you mean mlflow_tracking_uri?); take them "
            "out, or let them pass with --allow KEY");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_the_trainer), cmocka_unit_test(beside_a_deepspeed_config),
        cmocka_unit_test(keys_of_axolotl), cmocka_unit_test(no_password_is_shown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
