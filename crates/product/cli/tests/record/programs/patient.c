/* Two locks in two orders. With an argument, one thread does not wait for ever for its second lock:
   "timed" waits for a moment, "checked" takes a lock again that says so, and then comes no deadlock. */
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t a, b;
static const char *manner = "";

static void *forward(void *unused) {
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return unused;
}

static void *backward(void *unused) {
    pthread_mutex_lock(&b);
    if (!strcmp(manner, "timed")) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        if (pthread_mutex_timedlock(&a, &until) == 0) pthread_mutex_unlock(&a);
    } else if (!strcmp(manner, "checked")) {
        if (pthread_mutex_lock(&b) == 0) return &a;
    } else {
        pthread_mutex_lock(&a);
        pthread_mutex_unlock(&a);
    }
    pthread_mutex_unlock(&b);
    return unused;
}

int main(int count, char **arguments) {
    pthread_t threads[2];
    pthread_mutexattr_t checks;
    if (count > 1) manner = arguments[1];
    pthread_mutexattr_init(&checks);
    pthread_mutexattr_settype(&checks, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&a, &checks);
    pthread_mutex_init(&b, &checks);
    pthread_create(&threads[0], 0, forward, 0);
    usleep(20000);
    pthread_create(&threads[1], 0, backward, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
