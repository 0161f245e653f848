/* Linked into every test in C in front of plan_lower (ld --wrap): whatever plans, the test itself,
 * the engine or a search, has each list checked after every pass, and each plan when it is
 * finished (plan/verify/verify.h). */
#include "plan/pass/passes.h"

sifr_status __real_plan_lower(const sifr_model *model, device *dev, const plan_settings *settings,
                              plan_schedule **out, sifr_error *error) SIFR_MUST_CHECK;
sifr_status __wrap_plan_lower(const sifr_model *model, device *dev, const plan_settings *settings,
                              plan_schedule **out, sifr_error *error) SIFR_MUST_CHECK;

sifr_status __wrap_plan_lower(const sifr_model *model, device *dev, const plan_settings *settings,
                              plan_schedule **out, sifr_error *error) {
    plan_settings verified = *settings;
    verified.verify = true;
    return __real_plan_lower(model, dev, &verified, out, error);
}
