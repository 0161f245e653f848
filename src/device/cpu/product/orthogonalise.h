/* DEVICE_ORTHOGONALISE on the CPU: products are those of DEVICE_LINEAR, in fp32, with the same cut
 * into tiles, so bits depend on the shape alone. */
#ifndef CPU_ORTHOGONALISE_H
#define CPU_ORTHOGONALISE_H

#include "device/cpu/cpu.h"

sifr_status cpu_prepare_orthogonalise(device *dev, device_call *call,
                                      sifr_error *error) SIFR_MUST_CHECK;
sifr_status cpu_run_orthogonalise(device *dev, const device_call *call,
                                  sifr_error *error) SIFR_MUST_CHECK;

#endif
