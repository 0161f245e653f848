// Counts the tokens of a text and lets a model continue it, in C++:
//     c++ complete.cpp $(pkg-config --cflags --libs sifr) -o complete
//     ./complete models/gpt2 'In the beginning' 40
#include <sifr/sifr.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

// Frees a handle with the function that the library has for it.
template <typename T, void (*release)(T *)> struct freed {
    void operator()(T *handle) const {
        release(handle);
    }
};
template <typename T, void (*release)(T *)> using handle = std::unique_ptr<T, freed<T, release>>;
using context = handle<sifr_context, sifr_context_free>;
using tokenizer = handle<sifr_tokenizer, sifr_tokenizer_free>;
using generator = handle<sifr_generator, sifr_generator_free>;

void check(sifr_status status, const sifr_error &error) {
    if (status != SIFR_OK) throw std::runtime_error(error.message);
}

std::size_t count_tokens(sifr_context *of, const char *model, const std::string &text) {
    sifr_error error = {};
    sifr_tokenizer *opened = nullptr;
    check(sifr_tokenizer_open(of, model, &opened, &error), error);
    tokenizer own(opened);
    const int32_t *ids;
    std::size_t count;
    check(sifr_tokenizer_encode(opened, text.data(), text.size(), true, &ids, &count, &error),
          error);
    return count;
}

// No exception may pass through the library: a callback returns a status.
sifr_status keep(void *user, std::size_t, const char *bytes, std::size_t size, sifr_error *) {
    static_cast<std::string *>(user)->append(bytes, size);
    return SIFR_OK;
}

std::string complete(sifr_context *of, const char *model, const std::string &text, int64_t tokens) {
    sifr_error error = {};
    sifr_generator *opened = nullptr;
    sifr_generator_options options = {};
    options.size = sizeof options;
    options.model = model;
    options.max_new_tokens = &tokens;
    check(sifr_generator_open(of, &options, &opened, &error), error);
    generator own(opened);

    sifr_prompt prompt = {};
    prompt.size = sizeof prompt;
    prompt.text = text.data();
    prompt.text_size = text.size();
    check(sifr_generator_add(opened, &prompt, &error), error);

    std::string made = text;
    sifr_generate_calls calls = {};
    calls.size = sizeof calls;
    calls.user = &made;
    calls.piece = keep;
    check(sifr_generator_run(opened, &calls, &error), error);
    return made;
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: complete MODEL TEXT TOKENS\n");
        return 2;
    }
    try {
        sifr_error error = {};
        sifr_context *opened = nullptr;
        check(sifr_context_create(nullptr, &opened, &error), error);
        context own(opened);
        std::fprintf(stderr, "%zu tokens\n", count_tokens(opened, argv[1], argv[2]));
        std::printf("%s\n", complete(opened, argv[1], argv[2], std::atoll(argv[3])).c_str());
    } catch (const std::exception &failure) {
        std::fprintf(stderr, "complete: %s\n", failure.what());
        return 1;
    }
    return 0;
}
