/* What `sifr doctor` and `sifr --version --verbose` know without opening a device or starting a
 * program. The caller owns the objects. */
#ifndef CLI_SYSTEM_FACTS_H
#define CLI_SYSTEM_FACTS_H

#include <jansson.h>

/* The libraries that are loaded, by name, with their versions as they give them. */
json_t *cli_library_versions(void);

/* What may be left out of a build: "GPU kernels" and "Parquet", each with what is inside or "none".
 */
json_t *cli_built_parts(void);

/* Sets of instructions of this processor that kernels are written for: name to true or false. */
json_t *cli_instruction_sets(void);

#endif
