/* An HTTP server for programs of this machine: one page, on 127.0.0.1, by a thread of its own.
 *
 * It answers GET and HEAD, one request of a connection, whose head has at most 4 KiB. It has 16
 * clients at a time, and gives each two seconds from its connection to its reply's end: where there
 * is one more, that which has been answered, or has had the most time, makes room. So a client that
 * is slow, or many, hold up neither the others nor the end of the run. */
#ifndef TRAIN_LOOPBACK_SERVER_H
#define TRAIN_LOOPBACK_SERVER_H

#include <stddef.h>

#include "base/errors.h"

typedef struct train_server train_server;

/* Serves `path` of `port`, which is 1 to 65535. `page` makes the text, by malloc, or NULL; it
 * is called by the server's thread. SIFR_FAILED if the port cannot be taken. */
sifr_status train_server_open(int port, const char *path, char *(*page)(void *user, size_t *size),
                              void *user, train_server **out, sifr_error *error) SIFR_MUST_CHECK;
void train_server_close(train_server *server); /* harmless on NULL */

#endif
