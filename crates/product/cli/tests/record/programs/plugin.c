// A library that a program loads and unloads.
int plugin_sum;

int plugin_add(int value) { return plugin_sum += value; }

#ifdef HAS_WORKER
// A thread that the library itself starts, and stops before it is gone.

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static pthread_t worker;
static atomic_int is_over;
static long rounds;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *argument) {
    while (!atomic_load(&is_over)) {
        pthread_mutex_lock(&guard);
        rounds++;
        pthread_mutex_unlock(&guard);
        usleep(1000);
    }
    return argument;
}

__attribute__((constructor)) static void begin(void) { pthread_create(&worker, 0, work, 0); }

__attribute__((destructor)) static void end(void) {
    atomic_store(&is_over, 1);
    pthread_join(worker, 0);
}
#endif
