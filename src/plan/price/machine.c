/* A machine's description: measured, or read from JSON, which `sifr bench comm` or a person
 * writes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "plan/price/price.h"

/* Overhead of the executor and of starting threads, for each kernel. */
static const double instruction_seconds = 5e-6;
static const double launch_seconds = 2e-6; /* on a GPU */

enum { COPY_BYTES = 16 << 20 };

/* Kernels use instructions of compute capability 8.0: asynchronous copies, products in bf16. */
enum { MACHINE_VERSION = 1, FILE_LIMIT = 1 << 20, LEAST_CAPABILITY = 80 };

typedef struct machine_key {
    const char *name;
    double *value;
    bool may_be_zero;
} machine_key;

static sifr_status read_key(const json_t *object, const machine_key *key, const char *path,
                            sifr_error *error) {
    double value;
    BASE_TRY(base_json_double(object, key->name, *key->value, &value, path, error));
    const json_t *given = json_object_get(object, key->name);
    bool says = given && !json_is_null(given);
    if (says && (!isfinite(value) || value < 0 || (value == 0 && !key->may_be_zero)))
        return base_fail(error, SIFR_USAGE, "%s: %s: %g must be a number %s 0", path, key->name,
                         value, key->may_be_zero ? "of at least" : "above");
    *key->value = value;
    return SIFR_OK;
}

/* Major and minor version as one number, from 9.0. */
static sifr_status read_capability(const json_t *object, const char *path, plan_machine *machine,
                                   sifr_error *error) {
    double version = machine->compute_capability / 10.0;
    BASE_TRY(base_json_double(object, "compute_capability", version, &version, path, error));
    double tenths = round(10 * version);
    if (!(version >= 0 && version < 100) || fabs(tenths - 10 * version) > 1e-6)
        return base_fail(error, SIFR_USAGE, "%s: compute_capability: %g is no version such as 9.0",
                         path, version);
    if (tenths > 0 && tenths < LEAST_CAPABILITY)
        return base_fail(error, SIFR_USAGE,
                         "%s: compute_capability: %.1f: CUDA kernels need at least %.1f", path,
                         version, LEAST_CAPABILITY / 10.0);
    machine->compute_capability = (int32_t)tenths;
    return SIFR_OK;
}

static sifr_status read_multiprocessors(const json_t *object, const char *path,
                                        plan_machine *machine, sifr_error *error) {
    int64_t count;
    BASE_TRY(
        base_json_int(object, "multiprocessors", machine->multiprocessors, &count, path, error));
    if (count < 0 || count > INT32_MAX)
        return base_fail(error, SIFR_USAGE,
                         "%s: multiprocessors: %lld must be from 0 (not known) to %d", path,
                         (long long)count, INT32_MAX);
    machine->multiprocessors = (int32_t)count;
    return SIFR_OK;
}

/* What ranks compute on, and whether its memory is its own: a GPU's is. */
static sifr_status read_device(const json_t *object, const char *path, plan_machine *machine,
                               sifr_error *error) {
    static const char *const names[] = {"cpu", "cuda"};
    const char *name = names[machine->device];
    BASE_TRY(base_json_string(object, "device", name, &name, path, error));
    bool cuda = strcmp(name, names[PLAN_MACHINE_CUDA]) == 0;
    if (!cuda && strcmp(name, names[PLAN_MACHINE_CPU]) != 0)
        return base_fail(error, SIFR_USAGE, "%s: device: \"%s\" is neither \"cpu\" nor \"cuda\"",
                         path, name);
    BASE_TRY(base_json_bool(object, "separate_memory", cuda || machine->separate,
                            &machine->separate, path, error));
    if (cuda && !machine->separate)
        return base_fail(error, SIFR_USAGE,
                         "%s: separate_memory: false: a GPU has memory of its own", path);
    machine->device = cuda ? PLAN_MACHINE_CUDA : PLAN_MACHINE_CPU;
    BASE_TRY(read_capability(object, path, machine, error));
    return read_multiprocessors(object, path, machine, error);
}

/* Besides figures. `sifr bench comm` keeps what it measured in "measurements". */
static const char *const other_keys[] = {
    "version",         "ranks_per_host",     "room_bytes",      "host_room_bytes", "device",
    "separate_memory", "compute_capability", "multiprocessors", "measurements"};

/* A name that is misspelt would leave an assumed figure in its place. */
static sifr_status refuse_unknown(json_t *object, const machine_key *figures, size_t count,
                                  const char *path, sifr_error *error) {
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value) {
        bool known = false;
        for (size_t k = 0; k < count; k++) known |= strcmp(name, figures[k].name) == 0;
        for (size_t k = 0; k < sizeof other_keys / sizeof *other_keys; k++)
            known |= strcmp(name, other_keys[k]) == 0;
        if (known) continue;
        return base_fail(error, SIFR_USAGE,
                         "%s: \"%.60s\" is no key of a machine; docs/schedule.md, \"Predicted "
                         "time\", lists them",
                         path, name);
    }
    return SIFR_OK;
}

static sifr_status read_machine(json_t *object, const char *path, plan_machine *machine,
                                sifr_error *error) {
    const machine_key keys[] = {
        {"fp32_operations_per_s", &machine->fp32_operations, false},
        {"bf16_operations_per_s", &machine->bf16_operations, false},
        {"memory_bytes_per_s", &machine->memory_bytes, false},
        {"disk_bytes_per_s", &machine->disk_bytes, false},
        {"copy_bytes_per_s", &machine->copy_bytes, false},
        {"instruction_s", &machine->instruction_seconds, true},
        {"host_latency_s", &machine->host.latency_seconds, true},
        {"host_bytes_per_s", &machine->host.bytes_per_second, false},
        {"network_latency_s", &machine->network.latency_seconds, true},
        {"network_bytes_per_s", &machine->network.bytes_per_second, false},
    };
    const size_t count = sizeof keys / sizeof *keys;
    int64_t version, ranks, capacity, host_capacity;
    BASE_TRY(base_json_int(object, "version", MACHINE_VERSION, &version, path, error));
    if (version != MACHINE_VERSION)
        return base_fail(error, SIFR_USAGE, "%s: version %lld: this sifr knows version %d", path,
                         (long long)version, (int)MACHINE_VERSION);
    BASE_TRY(refuse_unknown(object, keys, count, path, error));
    for (size_t k = 0; k < count; k++) BASE_TRY(read_key(object, &keys[k], path, error));
    BASE_TRY(base_json_int(object, "ranks_per_host", machine->ranks_per_host, &ranks, path, error));
    if (ranks < 0 || ranks > INT32_MAX)
        return base_fail(error, SIFR_USAGE,
                         "%s: ranks_per_host: %lld must be from 0 (not known) to %d", path,
                         (long long)ranks, INT32_MAX);
    BASE_TRY(base_json_int(object, "room_bytes", machine->room_bytes, &capacity, path, error));
    if (capacity < 0)
        return base_fail(error, SIFR_USAGE, "%s: room_bytes: %lld is not an amount of memory", path,
                         (long long)capacity);
    BASE_TRY(base_json_int(object, "host_room_bytes", machine->host_room_bytes, &host_capacity,
                           path, error));
    if (host_capacity < 0)
        return base_fail(error, SIFR_USAGE, "%s: host_room_bytes: %lld is not an amount of memory",
                         path, (long long)host_capacity);
    BASE_TRY(read_device(object, path, machine, error));
    machine->host_room_bytes = host_capacity;
    machine->ranks_per_host = (int32_t)ranks;
    machine->room_bytes = capacity;
    return SIFR_OK;
}

sifr_status plan_machine_load(const char *path, plan_machine *machine, sifr_error *error) {
    json_t *object;
    plan_machine read = *machine;
    BASE_TRY(base_json_load(path, FILE_LIMIT, &object, error));
    sifr_status status = json_is_object(object)
                             ? read_machine(object, path, &read, error)
                             : base_fail(error, SIFR_USAGE, "%s: must hold a JSON object", path);
    json_decref(object);
    if (status == SIFR_OK) *machine = read;
    return status;
}

plan_machine plan_machine_unknown(void) {
    return (plan_machine){.instruction_seconds = instruction_seconds};
}

bool plan_machine_is_known(const plan_machine *machine) {
    return machine->fp32_operations > 0 && machine->bf16_operations > 0 &&
           machine->memory_bytes > 0;
}

/* Bytes per second of copies to the device and back, of the slower direction; 0 where a run leaves
 * no room to find out. */
static sifr_status time_copies(device *dev, void *memory, void *host, double *rate,
                               sifr_error *error) {
    double least[] = {INFINITY, INFINITY};
    for (int round = 0; round < 3; round++) {
        double start = base_seconds();
        BASE_TRY(device_copy(dev, memory, host, COPY_BYTES, error));
        double middle = base_seconds();
        BASE_TRY(device_copy(dev, host, memory, COPY_BYTES, error));
        least[0] = fmin(least[0], middle - start);
        least[1] = fmin(least[1], base_seconds() - middle);
    }
    *rate = (double)COPY_BYTES / fmax(least[0], least[1]);
    return SIFR_OK;
}

static sifr_status measure_copies(device *dev, double *rate, sifr_error *error) {
    void *memory, *host;
    *rate = 0;
    sifr_status status = device_take(dev, COPY_BYTES, &memory, error);
    if (status == SIFR_NO_MEMORY) return SIFR_OK;
    BASE_TRY(status);
    status = device_take_host(dev, COPY_BYTES, &host, error);
    if (status == SIFR_OK) {
        status = time_copies(dev, memory, host, rate, error);
        device_give(dev, host, COPY_BYTES);
    }
    device_give(dev, memory, COPY_BYTES);
    return status == SIFR_NO_MEMORY ? SIFR_OK : status;
}

sifr_status plan_machine_measure(device *dev, void *memory, int64_t bytes, plan_machine *machine,
                                 sifr_error *error) {
    device_limits limits;
    BASE_TRY(device_measure(dev, memory, bytes, &limits, error));
    machine->fp32_operations = limits.fp32_operations;
    machine->bf16_operations = limits.bf16_operations;
    machine->memory_bytes = limits.bytes;
    machine->instruction_seconds = instruction_seconds;
    if (!device_is_hidden(dev)) return SIFR_OK;
    machine->device = PLAN_MACHINE_CUDA;
    machine->separate = true;
    machine->instruction_seconds = launch_seconds;
    return measure_copies(dev, &machine->copy_bytes, error);
}

/* Of one thread of a server's core, with its share of the memory's speed; of a GPU. */
static const double thread_operations = 1.2e11, thread_bytes = 2e10;
static const double gpu_operations = 5e13, gpu_bytes = 2e12;

void plan_machine_typical(device *dev, plan_machine *machine) {
    bool gpu = device_is_hidden(dev);
    double threads = gpu ? 1 : device_threads(dev);
    machine->fp32_operations = threads * (gpu ? gpu_operations : thread_operations);
    machine->bf16_operations = (gpu ? 8 : 2) * machine->fp32_operations;
    machine->memory_bytes = threads * (gpu ? gpu_bytes : thread_bytes);
    machine->instruction_seconds = gpu ? launch_seconds : instruction_seconds;
    if (!gpu) return;
    machine->device = PLAN_MACHINE_CUDA;
    machine->separate = true;
}

sifr_status plan_machine_path(char out[BASE_PATH_LENGTH], sifr_error *error) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char folder[BASE_PATH_LENGTH];
    if (cache && cache[0] == '/') return base_path_join(out, cache, "sifr/comm.json", error);
    if (!home || !home[0])
        return base_fail(error, SIFR_FAILED, "neither XDG_CACHE_HOME nor HOME is set");
    BASE_TRY(base_path_join(folder, home, ".cache", error));
    return base_path_join(out, folder, "sifr/comm.json", error);
}

sifr_status plan_machine_load_stored(plan_machine *machine, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    if (plan_machine_path(path, NULL) != SIFR_OK || !base_is_file(path)) return SIFR_OK;
    return plan_machine_load(path, machine, error);
}
