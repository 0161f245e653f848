#include "train/view/html.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

sifr_status train_html_open(train_html *html, const char *path, sifr_error *error) {
    html->status = SIFR_OK;
    return base_writer_open(&html->writer, path, error);
}

sifr_status train_html_commit(train_html *html, sifr_error *error) {
    if (html->status != SIFR_OK) {
        if (error) *error = html->error;
        return html->status;
    }
    return base_writer_commit(&html->writer, error);
}

void train_html_close(train_html *html) {
    base_writer_abort(&html->writer);
}

static void put(train_html *html, const char *bytes, size_t size) {
    if (html->status == SIFR_OK)
        html->status = base_writer_write(&html->writer, bytes, size, &html->error);
}

void train_html_put(train_html *html, const char *markup) {
    put(html, markup, strlen(markup));
}

void train_html_putf(train_html *html, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    train_html_put(html, text);
}

/* Bytes of the UTF-8 character at `text`; 0: it is none, or a control. */
static size_t character(const unsigned char *text, size_t size) {
    unsigned char c = text[0];
    if (c == '\n' || c == '\t') return 1;
    if (c < 0x20 || c == 0x7f) return 0;
    if (c < 0x80) return 1;
    size_t length = c >= 0xc2 && c < 0xe0   ? 2
                    : c >= 0xe0 && c < 0xf0 ? 3
                    : c >= 0xf0 && c < 0xf5 ? 4
                                            : 0;
    if (length == 0 || length > size) return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    if (c == 0xc2 && text[1] < 0xa0) return 0;                                     /* C1 controls */
    if ((c == 0xe0 && text[1] < 0xa0) || (c == 0xed && text[1] >= 0xa0)) return 0; /* surrogates */
    if ((c == 0xf0 && text[1] < 0x90) || (c == 0xf4 && text[1] >= 0x90)) return 0;
    return length;
}

static const char *escape_of(char c) {
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

void train_html_textn(train_html *html, const char *text, size_t size) {
    for (size_t at = 0, length; at < size; at += length ? length : 1) {
        const char *escape = escape_of(text[at]);
        length = character((const unsigned char *)text + at, size - at);
        if (escape)
            train_html_put(html, escape);
        else if (length)
            put(html, text + at, length);
        else
            train_html_put(html, "\xef\xbf\xbd");
    }
}

void train_html_text(train_html *html, const char *text) {
    train_html_textn(html, text, strlen(text));
}

void train_html_name(train_html *html, const char *text) {
    enum { MOST = 80 };
    size_t size = strlen(text);
    if (size > MOST) {
        text += size - MOST;
        while (((unsigned char)*text & 0xc0) == 0x80) text++;
        train_html_put(html, "…");
    }
    train_html_text(html, text);
}

bool train_html_reached(const train_html *html, uint64_t bytes) {
    return html->writer.written >= bytes;
}
