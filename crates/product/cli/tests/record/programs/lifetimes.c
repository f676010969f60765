// Memory that one thread frees and another uses. The first argument says how; with a second one, "safe",
// the free waits for the last use.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct node {
    long value;
    atomic_int count;
};

static struct node *node;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int is_safe, is_done;

static void start(void *(*first)(void *), void *(*second)(void *)) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, first, NULL);
    // The free comes last in the recorded run, and nothing says that it must.
    if (is_safe && second == NULL) pthread_join(threads[0], NULL);
    if (second) pthread_create(&threads[1], NULL, second, NULL);
    if (!second) free(node);
    if (!(is_safe && second == NULL)) pthread_join(threads[0], NULL);
    if (second) pthread_join(threads[1], NULL);
}

// Nothing orders the two, or a join does.
static void *use(void *unused) {
    node->value = 1;
    return unused;
}

// Both hold the same lock, which orders them in neither way; safe is who waits for a flag.
static void *use_locked(void *unused) {
    pthread_mutex_lock(&mutex);
    node->value++;
    is_done = 1;
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void *free_locked(void *unused) {
    for (int done = 0; !done;) {
        pthread_mutex_lock(&mutex);
        done = is_safe ? is_done : 1;
        if (done) free(node);
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

// The last of two references frees; without counting, the second thread does.
static void *peek(void *unused) {
    static _Thread_local volatile long seen;
    seen = node->value;
    return unused;
}

static void *drop(void *unused) {
    peek(unused);
    if (atomic_fetch_sub(&node->count, 1) == 1) free(node);
    return unused;
}

static void *free_uncounted(void *unused) {
    free(node);
    return unused;
}

// Pages that are unmapped.
static void *use_pages(void *unused) {
    node[1].value = 2;
    return unused;
}

static void *unmap(void *unused) {
    munmap(node, 4096);
    return unused;
}

int main(int count, char **words) {
    is_safe = count > 2;
    node = calloc(1, sizeof *node);
    node->count = 2;
    const char *how = count > 1 ? words[1] : "";
    if (!strcmp(how, "join")) start(use, NULL);
    if (!strcmp(how, "lock")) start(use_locked, free_locked);
    if (!strcmp(how, "count")) start(is_safe ? drop : peek, is_safe ? drop : free_uncounted);
    if (!strcmp(how, "pages")) {
        node = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        node->value = 1;
        if (is_safe) {
            pthread_t thread;
            pthread_create(&thread, NULL, use_pages, NULL);
            pthread_join(thread, NULL);
            unmap(NULL);
        } else {
            start(use_pages, unmap);
        }
    }
    return 0;
}
