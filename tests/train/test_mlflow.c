/* What goes to MLflow's server, without one: keys, texts, numbers; messages that hide the login; a
 * server that does not answer. It is in test_asan, in test_tsan. */
#include "support/scratch.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "train/send/http.h"
#include "train/send/mlflow_text.h"

static void assert_key(const char *key, const char *wanted) {
    char out[TRAIN_MLFLOW_KEY + 1];
    train_mlflow_key(key, out);
    assert_string_equal(out, wanted);
}

static void keys_are_those_that_it_takes(void **state) {
    (void)state;
    char text[400], out[TRAIN_MLFLOW_KEY + 1];
    assert_key("eval_f1/class 1.0-a_b", "eval_f1/class 1.0-a_b");
    assert_key("a\"b%\n\\", "a_b___");
    assert_key("é", "__");
    assert_key("", "_");
    assert_key(".", "_");
    assert_key("/a", "_a");
    assert_key("a//b", "a__b");
    assert_key("a/", "a_");
    assert_key("a/../b", "a_.._b");
    assert_key("..a", "__a");
    assert_key("a/...", "a/...");
    memset(text, 'k', sizeof text);
    text[sizeof text - 1] = '\0';
    train_mlflow_key(text, out);
    assert_int_equal(strlen(out), TRAIN_MLFLOW_KEY);
}

static void texts_are_cut_between_characters(void **state) {
    (void)state;
    char out[16];
    train_mlflow_cut("1234567890", 10, out);
    assert_string_equal(out, "1234567890");
    train_mlflow_cut("12345678901", 10, out);
    assert_string_equal(out, "1234567…");
    train_mlflow_cut("123456é8901", 10, out);
    assert_string_equal(out, "123456…");
}

static void numbers_are_those_of_its_json(void **state) {
    (void)state;
    static const char *const words[][2] = {{"[0.1]", "0.10000000000000001"},
                                           {"[7]", "7"},
                                           {"[\"NaN\"]", "\"NaN\""},
                                           {"[\"-Infinity\"]", "\"-Infinity\""},
                                           {"[\"nan\"]", NULL},
                                           {"[null]", NULL},
                                           {"[[1]]", NULL}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char out[40];
        json_t *list = json_loads(words[i][0], 0, NULL);
        assert_int_equal(train_mlflow_number(json_array_get(list, 0), out), words[i][1] != NULL);
        if (words[i][1]) assert_string_equal(out, words[i][1]);
        json_decref(list);
    }
}

static void assert_tamed(const char *uri, const char *token, const char *text, const char *wanted) {
    const train_http_login login = {.token = token};
    char out[64];
    train_http *http = NULL;
    sifr_error error = {0};
    sifr_status status = train_http_open(uri, &login, &http, &error);
    if (status == SIFR_FAILED) { /* no libcurl: the message says so */
        assert_message(&error, "libcurl");
        skip();
    }
    assert_int_equal(status, SIFR_OK);
    train_http_tame(http, text, out, sizeof out);
    assert_string_equal(out, wanted);
    train_http_close(http);
}

/* What a server may echo: the header as curl makes it, with all three lengths of an end. */
static void a_login_is_hidden_as_it_is_sent(void **state) {
    (void)state;
    assert_tamed("http://me:s3cr3t@a", NULL, "Basic bWU6czNjcjN0 is wrong", "Basic *** is wrong");
    assert_tamed("http://me:s3cr3ts@a", NULL, "Basic bWU6czNjcjN0cw== ?", "Basic ***== ?");
    assert_tamed("http://me:s3cr3tss@a", NULL, "Basic bWU6czNjcjN0c3M=", "Basic ***=");
    assert_tamed("http://me:s3cr3t@a", NULL, "cut: Basic bWU6cz", "cut: Basic ***");
    assert_tamed("http://me:pw@a", NULL, "pw, not pwd: 'pw' bWU6cHc= pw",
                 "***, not pwd: '***' ***= ***");
    assert_tamed("http://me:*@a", NULL, "* of **", "*** of ******");
    assert_tamed("http://a", "tok", "Bearer tok, a token", "Bearer ***, a token");
}

/* A listener that takes what comes, and says nothing. */
static int listen_at(char uri[64]) {
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    int listens = socket(AF_INET, SOCK_STREAM, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(listens, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listens, 1), 0);
    assert_int_equal(getsockname(listens, (struct sockaddr *)&at, &size), 0);
    snprintf(uri, 64, "http://me:s3cr3t@127.0.0.1:%d/", ntohs(at.sin_port));
    return listens;
}

static void a_server_that_says_nothing_is_left(void **state) {
    (void)state;
    char uri[64], text[64];
    const train_http_login login = {.token = "a-token"};
    train_http *http = NULL;
    train_http_reply reply;
    sifr_error error = {0};
    int listens = listen_at(uri);
    sifr_status status = train_http_open(uri, &login, &http, &error);
    if (status == SIFR_FAILED) { /* no libcurl: the message says so */
        assert_message(&error, "libcurl");
        close(listens);
        skip();
    }
    assert_int_equal(status, SIFR_OK);
    assert_null(strstr(train_http_shown(http), "s3cr3t"));
    train_http_tame(http, "s3cr3t \033[1m\n a-s3cr3t", text, sizeof text);
    assert_string_equal(text, "***  [1m  a-***");
    train_http_tame(http, "cut in s3cr", text, sizeof text); /* a message that is longer is cut */
    assert_string_equal(text, "cut in ***");
    double start = base_seconds();
    train_http_until(http, start + 0.2);
    assert_int_equal(train_http_call(http, "/x", NULL, &reply, &error), SIFR_FAILED);
    assert_message(&error, ": no answer in time");
    assert_int_equal(train_http_call(http, "/x", "{}", &reply, &error), SIFR_FAILED);
    assert_true(base_seconds() - start < 10);
    train_http_close(http);
    close(listens);
}

static void addresses_that_are_none_are_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {"",          "sqlite:///x", "http://",
                                        "http:///x", "http://a b",  "http://a/?q",
                                        "http://u@", "ftp://a",     "http://a\n"};
    const train_http_login login = {0};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        train_http *http = NULL;
        sifr_error error = {0};
        assert_int_equal(train_http_open(wrong[i], &login, &http, &error), SIFR_USAGE);
        assert_null(http);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(keys_are_those_that_it_takes),
                                       cmocka_unit_test(texts_are_cut_between_characters),
                                       cmocka_unit_test(numbers_are_those_of_its_json),
                                       cmocka_unit_test(a_login_is_hidden_as_it_is_sent),
                                       cmocka_unit_test(a_server_that_says_nothing_is_left),
                                       cmocka_unit_test(addresses_that_are_none_are_refused)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
