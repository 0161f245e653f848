/* The optimizer section: rates, types and their defaults, and what a type does not take. */
#include "config/config_case.h"

static void learning_rates(void **state) {
    (void)state;
    config_case *c = config_case_text("{\"optimizer\": {\"type\": \"Adam\"}}");
    config_case_accepted(c);
    assert_true(c->config.lr == 1e-3); /* DeepSpeed's own default */
    config_case_free(c);
    c = config_case_text("{}");
    config_case_accepted(c);
    assert_true(c->config.lr == 5e-5);
    assert_int_equal(c->config.schedule.kind, CONFIG_LR_CONSTANT);
    assert_true(config_lr_at(&c->config.schedule, 7) == 5e-5);
    config_case_free(c);
    c = config_case_flags("{\"optimizer\": {\"params\": {\"lr\": 1e-4}}}", 1, "learning-rate",
                          "2e-4", NULL);
    config_case_accepted(c);
    assert_true(c->config.lr == 2e-4);
    config_case_free(c);
    config_refused(
        "{\"optimizer\": {\"params\": {\"lr\": 1e-4}}, \"sifr\": {\"learning_rate\": 2e-4}}",
        "ds.json: sifr.learning_rate is 0.0002, but optimizer.params.lr is 0.0001; leave "
        "one of them out");
    static const char *const top =
        "{\"scheduler\": {\"type\": \"WarmupLR\", \"params\": {\"warmup_max_lr\": 1e-4}}}";
    config_case_refused(
        config_case_flags(top, 1, "learning-rate", "2e-4", NULL),
        "--learning-rate 0.0002 would have no effect: scheduler.params.warmup_max_lr "
        "is 0.0001; set that to \"auto\" or to the same");
    config_said(
        "{\"optimizer\": {\"params\": {\"lr\": 1e-3}}, \"scheduler\": {\"type\": \"WarmupLR\","
        " \"params\": {\"warmup_max_lr\": 1e-4}}}",
        "optimizer.params.lr", "no effect, scheduler.type WarmupLR sets the rate");
}

static void adam_modes(void **state) {
    (void)state;
    static const struct {
        const char *text;
        sifr_optimizer_type kind;
        bool decoupled;
    } cases[] = {
        {"{\"optimizer\": {\"type\": \"Adam\"}}", SIFR_ADAM, true},
        {"{\"optimizer\": {\"type\": \"Adam\", \"params\": {\"adam_w_mode\": false}}}", SIFR_ADAM,
         false},
        {"{\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"adam_w_mode\": false,"
         " \"torch_adam\": true}}}",
         SIFR_ADAMW, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        config_case *c = config_case_text(cases[i].text);
        config_case_accepted(c);
        assert_int_equal(c->config.step.optimizer.type, cases[i].kind);
        assert_int_equal(c->config.step.optimizer.decoupled, cases[i].decoupled);
        config_case_free(c);
    }
    config_said(cases[2].text, "optimizer.params.adam_w_mode", "no effect, the type is AdamW");
    config_said(cases[2].text, "optimizer.params.torch_adam", "accepted without effect");
}

static void optimizers(void **state) {
    (void)state;
    config_case *c = config_case_text("{\"optimizer\": {\"type\": \"adagrad\"}}");
    config_case_accepted(c);
    assert_int_equal(c->config.step.optimizer.type, SIFR_ADAGRAD);
    assert_true(c->config.lr == 0.01);
    assert_true(c->config.step.optimizer.eps == 1e-10);
    config_case_free(c);
    c = config_case_text("{\"optimizer\": {\"type\": \"Adagrad\", \"params\": {\"lr\": 0.5, "
                         "\"eps\": 1e-6, \"lr_decay\": 0.25}}}");
    config_case_accepted(c);
    assert_true(c->config.lr == 0.5);
    assert_true(c->config.step.optimizer.eps == 1e-6);
    assert_true(c->config.step.optimizer.lr_decay == 0.25);
    config_case_free(c);
    c = config_case_text("{\"optimizer\": {\"type\": \"Lion\", \"params\": {\"lr\": \"auto\"}}}");
    config_case_accepted(c);
    assert_int_equal(c->config.step.optimizer.type, SIFR_LION);
    assert_true(c->config.lr == 5e-5);
    assert_true(c->config.step.optimizer.beta2 == 0.99);
    config_case_free(c);
    c = config_case_text("{\"optimizer\": {\"type\": \"SGD\", \"params\": {\"lr\": 0.1, "
                         "\"momentum\": 0.9, \"nesterov\": true}}}");
    config_case_accepted(c);
    assert_int_equal(c->config.step.optimizer.type, SIFR_SGD);
    assert_true(c->config.step.optimizer.momentum == 0.9);
    assert_true(c->config.step.optimizer.nesterov);
    config_case_free(c);
    c = config_case_text("{\"optimizer\": {\"type\": \"AdamWScheduleFree\", \"params\": "
                         "{\"warmup_steps\": 7}}}");
    config_case_accepted(c);
    assert_int_equal(c->config.step.optimizer.type, SIFR_SCHEDULE_FREE_ADAMW);
    assert_true(c->config.lr == 0.0025);
    assert_true(c->config.step.optimizer.weight_lr_power == 2);
    assert_int_equal(c->config.step.optimizer.warmup_steps, 7);
    config_case_free(c);
    c = config_case_text("{\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"amsgrad\": true}}}");
    config_case_accepted(c);
    assert_true(c->config.step.optimizer.amsgrad);
    assert_true(c->config.step.optimizer.decoupled);
    config_case_free(c);
    c = config_case_text("{\"optimizer\": {\"type\": \"lamb\", \"params\": {\"max_coeff\": 0.3}}}");
    config_case_accepted(c);
    assert_int_equal(c->config.step.optimizer.type, SIFR_LAMB);
    assert_true(c->config.step.optimizer.max_coeff == 0.3);
    assert_true(c->config.step.optimizer.min_coeff == 0.01);
    config_case_free(c);
    c = config_case_text("{\"optimizer\": {\"type\": \"Muon\"}}");
    config_case_accepted(c);
    const sifr_optimizer *muon = &c->config.step.optimizer;
    assert_int_equal(muon->type, SIFR_MUON);
    assert_int_equal(muon->ns_method, SIFR_NS_GRAM);
    assert_true(c->config.lr == 0.02);
    assert_true(muon->momentum == 0.95);
    assert_true(muon->beta2 == 0.95);
    assert_true(muon->eps == 1e-10);
    assert_true(muon->adam_scale == 3e-4 / 0.02);
    assert_true(!(muon->muon_scale > 0));
    config_case_free(c);
    c = config_case_text("{\"optimizer\": {\"type\": \"Muon\", \"params\": {\"lr\": 1e-3, "
                         "\"muon_lr\": 5e-3, \"ns_method\": \"standard\"}}}");
    config_case_accepted(c);
    assert_int_equal(c->config.step.optimizer.ns_method, SIFR_NS_STANDARD);
    assert_true(c->config.step.optimizer.muon_scale == 5e-3 / 1e-3);
    assert_true(!(c->config.step.optimizer.adam_scale > 0));
    config_case_free(c);
    config_refused(
        "{\"optimizer\": {\"type\": \"Muon\", \"params\": {\"muon_lr\": 5e-3}}, "
        "\"scheduler\": {\"type\": \"LRRangeTest\"}}",
        "ds.json: optimizer.params.muon_lr is 0.005, and the scheduler sets rates that are "
        "no shares of optimizer.params.lr; take another scheduler, or leave it out");
    config_refused("{\"optimizer\": {\"type\": \"Muon\", \"params\": {\"lr\": 0, \"adam_lr\": "
                   "5e-3}}}",
                   "ds.json: optimizer.params.adam_lr is 0.005, which is no share of "
                   "optimizer.params.lr 0; give that a value above 0");
    c = config_case_text("{\"optimizer\": {\"type\": \"adafactor\", \"params\": {\"eps\": [1e-20, "
                         "0.25], \"warmup_init\": true}}}");
    config_case_accepted(c);
    const sifr_optimizer *o = &c->config.step.optimizer;
    assert_int_equal(o->type, SIFR_ADAFACTOR);
    assert_true(o->eps == 1e-20);
    assert_true(o->least_scale == 0.25);
    assert_true(o->clip_threshold == 1);
    assert_true(o->decay_rate == -0.8);
    assert_true(o->scale_parameter);
    assert_true(!o->has_momentum);
    assert_true(config_lr_at(&c->config.schedule, -1) == 1e-6);
    assert_true(config_lr_at(&c->config.schedule, 1000000 - 2) == 1e-3);
    config_case_free(c);
    c = config_case_text("{\"optimizer\": {\"type\": \"Adafactor\", \"params\": {\"lr\": 0.5, "
                         "\"beta1\": 0.5, \"relative_step\": false}}}");
    config_case_accepted(c);
    assert_true(c->config.step.optimizer.has_momentum);
    assert_true(c->config.step.optimizer.beta1 == 0.5);
    assert_true(c->config.step.optimizer.eps == 1e-30);
    assert_true(config_lr_at(&c->config.schedule, 7) == 0.5);
    config_case_free(c);
    config_refused("{\"optimizer\": {\"type\": \"Adafactor\", \"params\": {\"lr\": 1e-3}}}",
                   "ds.json: optimizer.params.lr is given, and Adafactor's relative_step has rates "
                   "of its own; set optimizer.params.relative_step to false, or leave it out");
    config_refused(
        "{\"optimizer\": {\"type\": \"Adafactor\"}, \"scheduler\": {\"type\": "
        "\"WarmupLR\"}}",
        "ds.json: scheduler.type is given, and Adafactor's relative_step has rates of its "
        "own; set optimizer.params.relative_step to false, or leave it out");
    config_refused("{\"optimizer\": {\"type\": \"Adafactor\", \"params\": {\"warmup_init\": true, "
                   "\"relative_step\": false}}}",
                   "ds.json: optimizer.params.warmup_init is true, which is a part of "
                   "relative_step; set optimizer.params.relative_step to true, or leave it out");
    config_refused(
        "{\"bf16\": {\"enabled\": true, \"bf16_optimizer_states\": true}, \"optimizer\": "
        "{\"type\": \"Adafactor\"}}",
        "ds.json: bf16.bf16_optimizer_states is true, and Adafactor keeps its states in "
        "fp32; leave it out");
    config_refused("{\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"eps\": [1e-8, 1e-3]}}}",
                   "ds.json: optimizer.params.eps must be a number >= 0 or \"auto\", not [1e-08, "
                   "0.001]; its default is 1e-8");
    config_refused("{\"optimizer\": {\"type\": \"Lamb\", \"params\": {\"min_coeff\": 20}}}",
                   "ds.json: optimizer.params.min_coeff is 20, above max_coeff 10; give a smaller "
                   "one");
    config_refused(
        "{\"optimizer\": {\"type\": \"SGD\", \"params\": {\"betas\": [0.9, 0.99]}}}",
        "ds.json: optimizer.params.betas is no parameter of SGD; leave it out, it is one "
        "of: Adam, AdamW, OneBitAdam, ZeroOneAdam, MuAdam, MuAdamW, Lamb, OneBitLamb, "
        "Muon, Lion, AdamWScheduleFree, Adam8bit, AdamW8bit");
    config_refused("{\"optimizer\": {\"type\": \"SGD\", \"params\": {\"nesterov\": true}}}",
                   "ds.json: optimizer.params.nesterov is true: Nesterov's momentum takes "
                   "optimizer.params.momentum above 0 and a dampening of 0, as in PyTorch");
    config_refused("{\"optimizer\": {\"type\": \"AdamWScheduleFree\"}, \"scheduler\": {\"type\": "
                   "\"OneCycle\", \"params\": {\"cycle_min_lr\": 1e-5, \"cycle_max_lr\": 1e-3}}}",
                   "scheduler.params.cycle_momentum is true, and the weights that "
                   "AdamWScheduleFree trains follow from its first beta, which cannot change; set "
                   "it to false");
}

static void averages(void **state) {
    (void)state;
    config_case *c = config_case_text("{\"sifr\": {\"ema\": {\"decay\": 0.99}}}");
    config_case_accepted(c);
    assert_true(c->config.step.optimizer.ema_decay == 0.99);
    config_case_free(c);
    c = config_case_text("{\"sifr\": {\"ema\": {\"decay\": 0}, \"lora\": {\"r\": 8}}}");
    config_case_accepted(c);
    config_case_free(c);
    config_refused(
        "{\"optimizer\": {\"type\": \"AdamW8bit\"}, \"sifr\": {\"ema\": {\"decay\": 0.5}}}",
        "ds.json: sifr.ema.decay is 0.5: an average of the weights is not supported yet "
        "with AdamW8bit; leave one of them out");
    config_refused("{\"sifr\": {\"ema\": {\"decay\": 0.5}, \"lora\": {\"r\": 8}}}",
                   "ds.json: sifr.ema.decay is 0.5: an average of the weights is not supported yet "
                   "with sifr.lora; leave one of them out");
    config_refused(
        "{\"sifr\": {\"ema\": {\"decay\": 1}}}",
        "ds.json: sifr.ema.decay must be a number from 0 to below 1 or \"auto\", not 1; its "
        "default is 0.0");
}

/* DeepSpeed's classes for Lion, Adagrad and LAMB have these keys, too. */
static void keys_of_deepspeed(void **state) {
    (void)state;
    static const char *const taken[] = {
        "{\"optimizer\": {\"type\": \"Lion\", \"params\": {\"set_grad_none\": false, "
        "\"fp32_optimizer_states\": true}}}",
        "{\"optimizer\": {\"type\": \"Adagrad\", \"params\": {\"amsgrad\": false, "
        "\"fp32_optimizer_states\": true}}}",
        "{\"optimizer\": {\"type\": \"Lamb\", \"params\": {\"amsgrad\": false, "
        "\"eps_inside_sqrt\": false, \"max_grad_norm\": 0}}}",
        "{\"optimizer\": {\"type\": \"SGD\", \"params\": {\"fused\": true}}}",
    };
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        config_case *c = config_case_text(taken[i]);
        config_case_accepted(c);
        config_case_free(c);
    }
    config_refused("{\"optimizer\": {\"type\": \"Lamb\", \"params\": {\"amsgrad\": true}}}",
                   "ds.json: optimizer.params.amsgrad is true, and Lamb has no AMSGrad variant; "
                   "leave it out");
    config_refused(
        "{\"optimizer\": {\"type\": \"Lamb\", \"params\": {\"eps_inside_sqrt\": true}}}",
        "ds.json: optimizer.params.eps_inside_sqrt is true, which is not supported yet; set it to "
        "false or leave it out (true adds eps to the second moment instead of its square root.)");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learning_rates),    cmocka_unit_test(averages),
        cmocka_unit_test(adam_modes),        cmocka_unit_test(optimizers),
        cmocka_unit_test(keys_of_deepspeed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
