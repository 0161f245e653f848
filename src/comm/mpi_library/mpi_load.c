#include "comm/mpi_library/mpi_load.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "comm/mpi_library/mpi_signals.h"

static const mpi_abi *abi_of(void *handle) {
    const char *own = mpi_abi_open_mpi.handles[AT_MPI_COMM_WORLD].symbol;
    return dlsym(handle, own) ? &mpi_abi_open_mpi : &mpi_abi_mpich;
}

static void find_path(void *handle, const char *file, char out[BASE_PATH_LENGTH]) {
    struct link_map *map = NULL;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && map->l_name[0])
        file = map->l_name;
    snprintf(out, BASE_PATH_LENGTH, "%s", file);
}

/* The object that the library itself uses: in a program that is linked with the library, the linker
 * may have copied it there. */
static void *find_object(void *handle, const char *symbol) {
    void *object = dlsym(RTLD_DEFAULT, symbol);
    return object ? object : dlsym(handle, symbol);
}

/* Fills the table; returns the first symbol that is missing, or NULL. */
static const char *fill(mpi_library *mpi, const mpi_abi *abi, void *handle) {
    static const char *const names[] = {
#define NAME(name, arguments) [AT_##name] = #name,
        MPI_FUNCTIONS(NAME)
#undef NAME
    };
    mpi->kind = abi->kind;
    mpi->calls = abi->calls;
    for (int i = 0; i < MPI_FUNCTION_COUNT; i++) {
        void *function = dlsym(handle, names[i]);
        if (!function) return names[i];
        memcpy(&mpi->functions[i], &function, sizeof function);
    }
    for (int i = 0; i < MPI_HANDLE_COUNT; i++) {
        const char *symbol = abi->handles[i].symbol;
        mpi->handles[i] = symbol ? (uintptr_t)find_object(handle, symbol) : abi->handles[i].value;
        if (!mpi->handles[i]) return symbol;
    }
    mpi->world.handle = mpi->handles[AT_MPI_COMM_WORLD];
    return NULL;
}

static void read_version(mpi_library *mpi) {
    char text[MPI_VERSION_TEXT] = "";
    int length;
    if (mpi->calls.version_text(mpi, text, &length) != 0) text[0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    for (char *c = text; *c; c++)
        if (*c == '\t') *c = ' '; /* MPICH sets its lines as a table */
    snprintf(mpi->version, sizeof mpi->version, "%.*s", (int)sizeof mpi->version - 1, text);
}

/* MPICH's numbers are no symbols, so that only words tell who has them. */
static bool has_numbers_of_mpich(const mpi_library *mpi) {
    static const char *const words[] = {"MPICH", "MVAPICH", "Intel(R) MPI", "ParaStation"};
    if (strstr(mpi->path, "libmpi_abi.so")) return false; /* MPI 5's own */
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(mpi->version, words[i])) return true;
    return false;
}

/* UCX, which Debian's MPICH uses, catches SIGHUP, SIGSEGV and others when it is loaded. The symbols
 * are for all, since Open MPI's plug-ins look for them among those of the program. */
static void *open_quietly(const char *file) {
    mpi_signals before = mpi_signals_of_program();
    void *handle = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
    mpi_signals_restore(&before);
    return handle;
}

/* A library that was cut short: the loader maps what is not there, and the process ends by SIGBUS.
 * What is no ELF file of this machine's kind the loader refuses itself. */
static bool is_cut(const base_map *map) {
    Elf64_Ehdr head;
    if (map->size < sizeof head) return false;
    memcpy(&head, map->data, sizeof head);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
        head.e_phentsize != sizeof(Elf64_Phdr))
        return false;
    for (size_t i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr part;
        if (head.e_phoff > map->size || (i + 1) * sizeof part > map->size - head.e_phoff)
            return true;
        memcpy(&part, map->data + head.e_phoff + i * sizeof part, sizeof part);
        if (part.p_type == PT_LOAD &&
            (part.p_filesz > map->size || part.p_offset > map->size - part.p_filesz))
            return true;
    }
    return false;
}

static sifr_status check_whole(const char *file, sifr_error *error) {
    base_map map;
    if (!strchr(file, '/') || base_map_file(file, &map, NULL) != SIFR_OK) return SIFR_OK;
    bool cut = is_cut(&map);
    base_unmap(&map);
    if (!cut) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s: is cut short; install that MPI again", file);
}

sifr_status mpi_load(const char *file, mpi_library *out, sifr_error *error) {
    *out = (mpi_library){.kind = COMM_NO_MPI};
    BASE_TRY(check_whole(file, error));
    void *handle = open_quietly(file);
    if (!handle) {
        const char *why = dlerror();
        return base_fail(error, SIFR_FAILED, "%s%s%s", strstr(why, file) ? "" : file,
                         strstr(why, file) ? "" : ": ", why);
    }
    find_path(handle, file, out->path);
    const char *missing = fill(out, abi_of(handle), handle);
    if (missing)
        return base_fail(error, SIFR_FAILED, "%s has no %s, so it is no MPI 3", out->path, missing);
    read_version(out);
    if (out->kind == COMM_MPICH && !has_numbers_of_mpich(out))
        return base_fail(
            error, SIFR_FAILED,
            "%s (%s) is not supported yet (supported: Open MPI's libmpi.so.40, MPICH's "
            "libmpi.so.12 and what keeps to its ABI)",
            out->path, out->version);
    return SIFR_OK;
}

bool mpi_find_loaded(comm_mpi_kind *kind, char path[BASE_PATH_LENGTH]) {
    static const comm_mpi_kind kinds[] = {COMM_OPEN_MPI, COMM_MPICH};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        for (const char *const *file = comm_mpi_files(kinds[i]); *file; file++) {
            void *handle = dlopen(*file, RTLD_NOW | RTLD_NOLOAD);
            if (!handle) continue;
            *kind = abi_of(handle)->kind;
            find_path(handle, *file, path);
            dlclose(handle);
            return true;
        }
    }
    return false;
}
