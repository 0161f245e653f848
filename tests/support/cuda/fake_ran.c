#include "support/cuda/fake_ran.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { LINES = 32 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static device_ran lines[LINES];
static int count;

static bool is_same(const device_ran *a, const device_ran *b) {
    return strcmp(a->products, b->products) == 0 && strcmp(a->own_why, b->own_why) == 0 &&
           strcmp(a->waits_why, b->waits_why) == 0 &&
           (a->unpinned_bytes > 0) == (b->unpinned_bytes > 0);
}

static void add(device_ran *to, const device_ran *ran) {
    to->library_products += ran->library_products;
    to->own_products += ran->own_products;
    to->word_waits += ran->word_waits;
    to->host_waits += ran->host_waits;
    if (ran->unpinned_bytes > to->unpinned_bytes) to->unpinned_bytes = ran->unpinned_bytes;
}

static void print_products(const device_ran *ran) {
    if (strncmp(ran->products, "own: ", 5) == 0)
        printf("own %lld (%s)", (long long)ran->own_products, ran->products + 5);
    else
        printf("%s %lld", ran->products, (long long)ran->library_products);
    if (ran->own_why[0]) printf(", own %lld (%s)", (long long)ran->own_products, ran->own_why);
}

static void print_waits(const device_ran *ran) {
    if (ran->word_waits == 0 && ran->host_waits == 0) printf("none");
    if (ran->word_waits) printf("words %lld", (long long)ran->word_waits);
    if (ran->host_waits)
        printf("%shost %lld (%s)", ran->word_waits ? ", " : "", (long long)ran->host_waits,
               ran->waits_why);
}

static void print(const device_ran *ran) {
    printf("ran: products ");
    print_products(ran);
    printf("; waits ");
    print_waits(ran);
    if (ran->unpinned_bytes)
        printf("; memory %lld bytes not pinned\n", (long long)ran->unpinned_bytes);
    else
        printf("; memory pinned\n");
}

void fake_ran_note(const device *dev) {
    device_ran ran;
    int i = 0;
    device_ran_of(dev, &ran);
    pthread_mutex_lock(&lock);
    while (i < count && !is_same(&lines[i], &ran)) i++;
    if (i == LINES)
        print(&ran);
    else if (i == count)
        lines[count++] = ran;
    else
        add(&lines[i], &ran);
    pthread_mutex_unlock(&lock);
}

void fake_ran_print(void) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < count; i++) print(&lines[i]);
    count = 0;
    pthread_mutex_unlock(&lock);
    fflush(stdout);
}
