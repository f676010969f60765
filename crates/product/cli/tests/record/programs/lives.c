// How threads end: by return, pthread_exit, cancellation, detached, with destructors of their data.
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t c = PTHREAD_COND_INITIALIZER;
pthread_key_t key;
sem_t waits, done;
int x, cleaned, destroyed;

static void destroy(void *value) { destroyed += *(int *)value; }

static void unlock(void *mutex) {
    cleaned++;
    pthread_mutex_unlock(mutex);
}

static void *exits(void *unused) {
    static int one = 1;
    (void)unused;
    pthread_setspecific(key, &one);
    x = 1;
    pthread_exit((void *)3);
}

static void *waits_for_ever(void *unused) {
    pthread_mutex_lock(&m);
    pthread_cleanup_push(unlock, &m);
    sem_post(&waits);
    for (;;) pthread_cond_wait(&c, &m);
    pthread_cleanup_pop(1);
    return unused;
}

static void *sleeps_for_ever(void *unused) {
    pthread_mutex_lock(&m);
    pthread_cleanup_push(unlock, &m);
    sem_post(&waits);
    for (;;) pause();
    pthread_cleanup_pop(1);
    return unused;
}

static void *detached(void *unused) {
    int on_stack[64];
    for (int i = 0; i < 64; i++) on_stack[i] = i;
    pthread_mutex_lock(&m);
    x += on_stack[9];
    pthread_mutex_unlock(&m);
    sem_post(&done);
    return unused;
}

static void cancel(void *(*routine)(void *)) {
    pthread_t thread;
    void *result;
    pthread_create(&thread, 0, routine, 0);
    sem_wait(&waits);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("%d ", result == PTHREAD_CANCELED);
    pthread_mutex_lock(&m);
    x++;
    pthread_mutex_unlock(&m);
}

int main(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    void *result;
    sem_init(&waits, 0, 0);
    sem_init(&done, 0, 0);
    pthread_key_create(&key, destroy);
    pthread_create(&thread, 0, exits, 0);
    pthread_join(thread, &result);
    printf("%d ", (int)(long)result);
    cancel(waits_for_ever);
    cancel(sleeps_for_ever);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < 4; i++) {
        pthread_create(&thread, i % 2 ? &attributes : 0, detached, 0);
        if (i % 2 == 0) pthread_detach(thread);
        sem_wait(&done);
    }
    printf("%d %d %d\n", x, cleaned, destroyed);
    pthread_exit(0);
}
