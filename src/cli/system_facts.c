#define PCRE2_CODE_UNIT_WIDTH 8
#include "cli/system_facts.h"

#include <dnnl.h>
#include <hwloc.h>
#include <pcre2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>
#include <xxhash.h>

#include "data/parquet/parquet.h"
#include "device/kinds.h"

static void put_text(json_t *object, const char *key, const char *text) {
    json_object_set_new(object, key, json_string(text));
}

static void put_version(json_t *object, const char *key, unsigned a, unsigned b, unsigned c) {
    json_object_set_new(object, key, json_sprintf("%u.%u.%u", a, b, c));
}

static void put_pcre2(json_t *object) {
    char text[64];
    if (pcre2_config(PCRE2_CONFIG_VERSION, NULL) > (int)sizeof text) return;
    pcre2_config(PCRE2_CONFIG_VERSION, text);
    text[strcspn(text, " ")] = '\0'; /* the date follows */
    put_text(object, "pcre2", text);
}

json_t *cli_library_versions(void) {
    json_t *libraries = json_object();
    const dnnl_version_t *dnnl = dnnl_version();
    put_version(libraries, "oneDNN", (unsigned)dnnl->major, (unsigned)dnnl->minor,
                (unsigned)dnnl->patch);
    put_text(libraries, "jansson", jansson_version_str());
    put_pcre2(libraries);
    put_text(libraries, "utf8proc", utf8proc_version());
    unsigned hwloc = hwloc_get_api_version();
    put_version(libraries, "hwloc_api", hwloc >> 16, hwloc >> 8 & 255, hwloc & 255);
    unsigned xxhash = XXH_versionNumber();
    put_version(libraries, "xxhash", xxhash / 10000, xxhash / 100 % 100, xxhash % 100);
    if (data_parquet_built()) put_text(libraries, "carquet", data_parquet_version());
    return libraries;
}

json_t *cli_built_parts(void) {
    const device_build gpu = device_build_of(SIFR_DEVICE_CUDA);
    json_t *parts = json_object();
    json_object_set_new(parts, "GPU kernels",
                        gpu.version
                            ? json_sprintf("compiled by CUDA %d.%d for %s", gpu.version / 1000,
                                           gpu.version % 1000 / 10, gpu.targets)
                            : json_string("none"));
    json_object_set_new(parts, "Parquet",
                        data_parquet_built() ? json_sprintf("carquet %s", data_parquet_version())
                                             : json_string("none"));
    return parts;
}

json_t *cli_instruction_sets(void) {
    bool avx2 = false, avx512 = false, bf16 = false;
#if defined(__x86_64__)
    __builtin_cpu_init();
    avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    bf16 = __builtin_cpu_supports("avx512bf16") != 0;
#endif
    return json_pack("{s:b, s:b, s:b}", "avx2", avx2, "avx512f", avx512, "avx512_bf16", bf16);
}
