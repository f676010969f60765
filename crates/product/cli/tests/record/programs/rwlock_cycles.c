/* Read-write locks in two orders, one thread after the other. "readers" share both locks, so nobody
   waits. "met" lets both have their first lock before they ask for the second: a deadlock. In
   "upgrade" two threads share one lock, and each then wants it alone. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static pthread_rwlock_t a = PTHREAD_RWLOCK_INITIALIZER, b = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t both;
static const char *manner = "";

static int is(const char *word) { return !strcmp(manner, word); }

static void cross(pthread_rwlock_t *first, pthread_rwlock_t *second) {
    pthread_rwlock_rdlock(first);
    if (is("met") || is("upgrade")) pthread_barrier_wait(&both);
    if (is("readers")) pthread_rwlock_rdlock(second);
    else pthread_rwlock_wrlock(second);
    pthread_rwlock_unlock(second);
    pthread_rwlock_unlock(first);
}

static void *forward(void *unused) { cross(&a, is("upgrade") ? &a : &b); return unused; }
static void *backward(void *unused) { cross(is("upgrade") ? &a : &b, &a); return unused; }

int main(int count, char **arguments) {
    pthread_t threads[2];
    if (count > 1) manner = arguments[1];
    pthread_barrier_init(&both, 0, 2);
    pthread_create(&threads[0], 0, forward, 0);
    if (!is("met") && !is("upgrade")) usleep(20000);
    pthread_create(&threads[1], 0, backward, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
