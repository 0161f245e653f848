/* What Prometheus reads: the text, and the page that has it. It is in test_asan, in test_tsan. */
#include "support/scratch.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "train/report/loopback_server.h"
#include "train/report/prometheus.h"
#include "train/report/queue.h"

static void the_text_has_the_newest_values(void **state) {
    (void)state;
    train_prometheus p = {.run = "a \"run\"\\\n", .total_steps = 10};
    train_record kept = {.when = TRAIN_EACH_RECORD, .step = 2, .samples = 16, .time = 1, .left = 8};
    train_record_put(&kept, TRAIN_LOSS, 2.5);
    train_record_put(&kept, TRAIN_GRAD_NORM, INFINITY);
    train_prometheus_note(&p, &kept);
    train_record step = {.when = TRAIN_EACH_STEP, .step = 3, .samples = 24, .time = 1.5, .left = 7};
    train_record_put(&step, TRAIN_LOSS, 9); /* its own, which metrics.jsonl has not */
    train_record_put(&step, TRAIN_MEMORY_BYTES, 1 << 20);
    train_prometheus_note(&p, &step);
    train_record evaluation = {.when = TRAIN_EACH_EVALUATION, .step = 3, .samples = 24, .time = 2};
    train_record_put(&evaluation, TRAIN_EVAL_LOSS, NAN);
    train_record_put_more(&evaluation, "rewards/chosen", 0.25);
    train_prometheus_note(&p, &evaluation);
    size_t size;
    char *text = train_prometheus_text(&p, &size);
    assert_string_equal(text, "# HELP sifr_running running (1: yes)\n# TYPE sifr_running gauge\n"
                              "sifr_running{run=\"a \\\"run\\\"\\\\\\n\"} 1.0\n"
                              "# HELP sifr_step step (steps)\n# TYPE sifr_step gauge\n"
                              "sifr_step{run=\"a \\\"run\\\"\\\\\\n\"} 3.0\n"
                              "# HELP sifr_total_steps total_steps (steps)\n"
                              "# TYPE sifr_total_steps gauge\n"
                              "sifr_total_steps{run=\"a \\\"run\\\"\\\\\\n\"} 10.0\n"
                              "# HELP sifr_samples samples (sequences)\n# TYPE sifr_samples gauge\n"
                              "sifr_samples{run=\"a \\\"run\\\"\\\\\\n\"} 24.0\n"
                              "# HELP sifr_seconds_left seconds_left (s)\n"
                              "# TYPE sifr_seconds_left gauge\n"
                              "sifr_seconds_left{run=\"a \\\"run\\\"\\\\\\n\"} 7.0\n"
                              "# HELP sifr_updated updated (s since 1970)\n"
                              "# TYPE sifr_updated gauge\n"
                              "sifr_updated{run=\"a \\\"run\\\"\\\\\\n\"} 2.0\n"
                              "# HELP sifr_loss loss (nats)\n# TYPE sifr_loss gauge\n"
                              "sifr_loss{run=\"a \\\"run\\\"\\\\\\n\"} 2.5\n"
                              "# HELP sifr_grad_norm grad_norm\n# TYPE sifr_grad_norm gauge\n"
                              "sifr_grad_norm{run=\"a \\\"run\\\"\\\\\\n\"} +Inf\n"
                              "# HELP sifr_eval_loss eval_loss (nats)\n"
                              "# TYPE sifr_eval_loss gauge\n"
                              "sifr_eval_loss{run=\"a \\\"run\\\"\\\\\\n\"} NaN\n"
                              "# HELP sifr_eval_rewards_chosen eval_rewards/chosen\n"
                              "# TYPE sifr_eval_rewards_chosen gauge\n"
                              "sifr_eval_rewards_chosen{run=\"a \\\"run\\\"\\\\\\n\"} 0.25\n");
    assert_int_equal(size, strlen(text));
    free(text);
}

static char *make_page(void *user, size_t *size) {
    *size = strlen(user);
    return strdup(user);
}

static int connect_to(int port) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(client, (struct sockaddr *)&at, sizeof at), 0);
    return client;
}

/* A port that is free now. */
static int find_port(void) {
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    int yes = 1, listens = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listens, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(listens, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(listens, (struct sockaddr *)&at, &size), 0);
    close(listens);
    return ntohs(at.sin_port);
}

/* What the client is sent until the end, in text[size]. False: the connection was cut off, or was
 * not ended in `seconds`. */
static bool read_all(int client, int seconds, char *text, size_t size) {
    const struct timeval patience = {.tv_sec = seconds};
    size_t used = 0;
    ssize_t got;
    setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    while ((got = recv(client, text + used, size - 1 - used, 0)) > 0) used += (size_t)got;
    text[used] = '\0';
    return got == 0;
}

static void say(int client, const char *text, size_t size) {
    for (ssize_t sent; size > 0; text += sent, size -= (size_t)sent) {
        sent = send(client, text, size, MSG_NOSIGNAL);
        assert_true(sent > 0);
    }
}

static void assert_answer(int port, const char *request, const char *begins, const char *ends) {
    char text[4096];
    int client = connect_to(port);
    say(client, request, strlen(request));
    assert_true(read_all(client, 20, text, sizeof text));
    close(client);
    size_t used = strlen(text);
    if (strncmp(text, begins, strlen(begins)) != 0) fail_msg("%s: %s", request, text);
    assert_true(used >= strlen(ends) && strcmp(text + used - strlen(ends), ends) == 0);
}

static void the_page_is_served(void **state) {
    (void)state;
    train_server *server, *second = NULL;
    sifr_error error = {0};
    int port = find_port();
    assert_int_equal(train_server_open(port, "/metrics", make_page, "a 1\n", &server, &error),
                     SIFR_OK);
    assert_answer(port, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK\r\n",
                  "Content-Length: 4\r\nConnection: close\r\n\r\na 1\n");
    assert_answer(port, "GET /metrics?a=b HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK\r\n", "a 1\n");
    assert_answer(port, "GET /metricsx HTTP/1.1\r\n\r\n", "HTTP/1.1 404 ",
                  "only /metrics is here\n");
    assert_answer(port, "HEAD /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n",
                  "Content-Length: 4\r\nConnection: close\r\n\r\n");
    assert_answer(port, "HEAD / HTTP/1.1\r\n\r\n", "HTTP/1.1 404 ",
                  "Content-Length: 22\r\nConnection: close\r\n\r\n");
    static const char *const others[] = {"POST",  "PUT",  "DELETE", "OPTIONS",
                                         "TRACE", "GETS", "get"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char request[64];
        snprintf(request, sizeof request, "%s /metrics HTTP/1.1\r\n\r\n", others[i]);
        assert_answer(port, request, "HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, HEAD\r\n",
                      "Content-Length: 0\r\nConnection: close\r\n\r\n");
    }
    assert_int_equal(train_server_open(port, "/metrics", make_page, "", &second, &error),
                     SIFR_FAILED);
    assert_null(second);
    assert_message(&error, "Address already in use");
    train_server_close(server);
}

/* More clients that say nothing, or not all, than the server has places: another one gets the page
 * at once, and the end of the run comes at once. */
static void slow_clients_hold_up_nobody(void **state) {
    (void)state;
    enum { SLOW = 40 };
    train_server *server;
    int port = find_port(), slow[SLOW];
    assert_int_equal(train_server_open(port, "/metrics", make_page, "a 1\n", &server, NULL),
                     SIFR_OK);
    double start = base_seconds();
    for (int i = 0; i < SLOW; i++) {
        slow[i] = connect_to(port);
        if (i % 2) assert_int_equal(send(slow[i], "GET /met", 8, MSG_NOSIGNAL), 8);
    }
    assert_answer(port, "GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n", "\r\n\r\na 1\n");
    train_server_close(server);
    assert_true(base_seconds() - start < 1.9);
    for (int i = 0; i < SLOW; i++) close(slow[i]);
}

/* Large the first time, so that it does not go into what sockets keep. */
static char *make_large_once(void *user, size_t *size) {
    enum { LARGE = 24 << 20 };
    bool *made = user;
    if (*made) return make_page("a 1\n", size);
    char *text = malloc(LARGE);
    if (text) memset(text, 'a', LARGE);
    *made = true;
    *size = LARGE;
    return text;
}

/* A client that sends a byte now and then, and one that does not read its reply: both go when their
 * two seconds are over, whatever they do, and meanwhile hold up nobody. */
static void two_seconds_are_all(void **state) {
    (void)state;
    enum { LARGE = 24 << 20 };
    static char text[LARGE + 4096];
    train_server *server;
    bool made = false, gone = false;
    int port = find_port();
    assert_int_equal(train_server_open(port, "/metrics", make_large_once, &made, &server, NULL),
                     SIFR_OK);
    double start = base_seconds();
    int slow = connect_to(port), deaf = connect_to(port);
    say(deaf, "GET /metrics HTTP/1.1\r\n\r\n", 25);
    for (int i = 0; !gone && i < 80; i++) {
        char byte;
        gone = send(slow, "G", 1, MSG_NOSIGNAL) < 0 ||
               recv(slow, &byte, 1, MSG_DONTWAIT) == 0; /* ended by the server */
        if (i == 4)
            assert_answer(port, "GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n", "a 1\n");
        usleep(100000);
    }
    assert_true(gone);
    assert_in_range((int)(1e3 * (base_seconds() - start)), 1900, 7000);
    read_all(deaf, 20, text, sizeof text);
    assert_in_range(strlen(text), 1, LARGE - 1);
    train_server_close(server);
    close(slow);
    close(deaf);
}

/* Headers without end are refused, and what is sent beside a request does not take its reply back:
 * further requests, a text, more than is read at a time. */
static void a_reply_arrives_whatever_is_sent(void **state) {
    (void)state;
    enum { SIZE = 1 << 20 };
    static char much[SIZE];
    static const char request[] = "GET /metrics HTTP/1.1\r\n\r\n", header[] = "X-Much: ";
    train_server *server;
    char text[4096];
    int port = find_port();
    assert_int_equal(train_server_open(port, "/metrics", make_page, "a 1\n", &server, NULL),
                     SIFR_OK);
    memset(much, 'a', SIZE);
    memcpy(much, request, sizeof request - 3); /* without its last line */
    memcpy(much + sizeof request - 3, header, sizeof header - 1);
    int client = connect_to(port);
    say(client, much, SIZE);
    assert_true(read_all(client, 20, text, sizeof text));
    assert_int_equal(strncmp(text, "HTTP/1.1 431 ", 13), 0);
    close(client);
    for (int i = 0; i < SIZE; i++) much[i] = request[i % (int)(sizeof request - 1)];
    client = connect_to(port);
    say(client, much, SIZE);
    assert_true(read_all(client, 20, text, sizeof text));
    const char *reply = strstr(text, "HTTP/1.1 200 OK\r\n");
    assert_ptr_equal(reply, text);
    assert_null(strstr(reply + 1, "HTTP/1.1")); /* one for a connection, as it says */
    assert_non_null(strstr(text, "Connection: close\r\n"));
    close(client);
    train_server_close(server);
}

/* A client that sends no more is answered; one that has not said all is let go at once. */
static void half_closed_connections_end(void **state) {
    (void)state;
    train_server *server;
    char text[4096];
    int port = find_port();
    assert_int_equal(train_server_open(port, "/metrics", make_page, "a 1\n", &server, NULL),
                     SIFR_OK);
    int client = connect_to(port);
    say(client, "GET /metrics HTTP/1.1\r\n\r\n", 25);
    assert_int_equal(shutdown(client, SHUT_WR), 0);
    assert_true(read_all(client, 20, text, sizeof text));
    assert_int_equal(strncmp(text, "HTTP/1.1 200 OK\r\n", 17), 0);
    close(client);
    double start = base_seconds();
    client = connect_to(port);
    say(client, "GET /metrics", 12);
    assert_int_equal(shutdown(client, SHUT_WR), 0);
    assert_true(read_all(client, 20, text, sizeof text));
    assert_int_equal(strlen(text), 0);
    assert_true(base_seconds() - start < 1.5);
    close(client);
    train_server_close(server);
}

static int open_files(void) {
    int count = 0;
    for (int i = 0; i < 1024; i++) count += fcntl(i, F_GETFD) >= 0;
    return count;
}

/* The server holds a fixed number of connections. One that waits for its answer keeps its place
 * where others, which are answered, do not close. */
static void places_are_few(void **state) {
    (void)state;
    enum { MANY = 50, PLACES = 16 };
    train_server *server;
    char text[4096];
    int port = find_port(), idle[MANY];
    assert_int_equal(train_server_open(port, "/metrics", make_page, "a 1\n", &server, NULL),
                     SIFR_OK);
    int before = open_files();
    int waits = connect_to(port);
    say(waits, "GET /metrics ", 13);
    for (int i = 0; i < MANY; i++) {
        idle[i] = connect_to(port);
        say(idle[i], "GET /metrics HTTP/1.1\r\n\r\n", 25);
        assert_true(read_all(idle[i], 20, text, sizeof text)); /* and stays open here */
    }
    assert_in_range(open_files() - before, MANY + 1, MANY + 1 + PLACES);
    say(waits, "HTTP/1.1\r\n\r\n", 12);
    assert_true(read_all(waits, 20, text, sizeof text));
    assert_int_equal(strncmp(text, "HTTP/1.1 200 OK\r\n", 17), 0);
    for (int i = 0; i < MANY; i++) close(idle[i]);
    close(waits);
    train_server_close(server);
}

static double processor_seconds(void) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

/* A process that can open no more files: the client waits, and takes no processor. */
static void a_full_process_does_not_spin(void **state) {
    (void)state;
    train_server *server;
    struct rlimit limit, none;
    struct sockaddr_in at = {.sin_family = AF_INET};
    int port = find_port();
    at.sin_port = htons((uint16_t)port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(train_server_open(port, "/metrics", make_page, "a 1\n", &server, NULL),
                     SIFR_OK);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    enum { MANY = 64 }; /* more than the server waits for, so that poll takes them */
    int client = socket(AF_INET, SOCK_STREAM, 0), full[MANY];
    for (int i = 0; i < MANY; i++) full[i] = dup(client);
    none = limit;
    none.rlim_cur = (rlim_t)full[MANY - 1] + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&at, sizeof at), 0);
    double before = processor_seconds();
    usleep(300000);
    assert_true(processor_seconds() - before < 0.1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (int i = 0; i < MANY; i++) close(full[i]);
    assert_answer(port, "GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n", "a 1\n");
    close(client);
    train_server_close(server);
}

/* Of the config: the key is named, with what to do. */
static void a_port_in_use_is_refused(void **state) {
    (void)state;
    train_server *server;
    train_queue *queue;
    train_host host = {0};
    sifr_error error = {0};
    int port = find_port();
    sifr_config config = {.train_batch_size = 8, .prometheus_port = port};
    train_report_settings settings = {.config = &config, .host = &host, .output = "out"};
    assert_int_equal(train_server_open(port, "/metrics", make_page, "", &server, NULL), SIFR_OK);
    assert_int_equal(train_queue_open(&settings, &queue, &error), SIFR_USAGE);
    assert_message(&error, "prometheus_port: 127.0.0.1:");
    assert_message(&error, ": Address already in use; give a port that is free");
    train_server_close(server);
    assert_int_equal(train_queue_open(&settings, &queue, &error), SIFR_OK);
    train_queue_close(queue);
    config = (sifr_config){.prometheus_file = scratch_path("nowhere/sifr.prom")};
    assert_int_equal(train_queue_open(&settings, &queue, &error), SIFR_USAGE);
    assert_message(&error, "prometheus_file: ");
    assert_message(&error, "give a path in a folder that can be written");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_text_has_the_newest_values),
                                       cmocka_unit_test(the_page_is_served),
                                       cmocka_unit_test(slow_clients_hold_up_nobody),
                                       cmocka_unit_test(two_seconds_are_all),
                                       cmocka_unit_test(a_reply_arrives_whatever_is_sent),
                                       cmocka_unit_test(half_closed_connections_end),
                                       cmocka_unit_test(places_are_few),
                                       cmocka_unit_test(a_full_process_does_not_spin),
                                       cmocka_unit_test(a_port_in_use_is_refused)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
