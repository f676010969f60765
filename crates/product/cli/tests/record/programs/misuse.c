// Mutexes, conditions and threads that are misused. The first argument says how; with a second one, "right",
// they are not.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int is_right, data;

static void *release(void *unused) {
    data = 1;
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void *use(void *unused) {
    pthread_mutex_lock(&mutex);
    data++;
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void release_free(void) {
    if (is_right) pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

// The lock is handed over: what the one did comes before what the other does, though it must not be so.
static void release_of_other(void) {
    pthread_t thread;
    pthread_mutex_lock(&mutex);
    if (is_right) pthread_mutex_unlock(&mutex);
    pthread_create(&thread, NULL, is_right ? use : release, NULL);
    pthread_mutex_lock(&mutex);
    data = 2;
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
}

static void destroy_held(void) {
    pthread_mutex_t other;
    pthread_mutex_init(&other, NULL);
    pthread_mutex_lock(&other);
    if (is_right) pthread_mutex_unlock(&other);
    pthread_mutex_destroy(&other);
}

static void wait_without(void) {
    struct timespec until = {1, 0};
    if (is_right) pthread_mutex_lock(&mutex);
    pthread_cond_timedwait(&condition, &mutex, &until);
    if (is_right) pthread_mutex_unlock(&mutex);
}

static void leak(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, use, NULL);
    struct timespec moment = {0, 50000000};
    nanosleep(&moment, NULL);
    if (is_right) pthread_detach(thread);
}

int main(int count, char **words) {
    is_right = count > 2;
    if (!strcmp(words[1], "free")) release_free();
    if (!strcmp(words[1], "other")) release_of_other();
    if (!strcmp(words[1], "destroy")) destroy_held();
    if (!strcmp(words[1], "wait")) wait_without();
    if (!strcmp(words[1], "leak")) leak();
    puts("done");
    return 0;
}
