/* Handles that begin again where another ended: at one address, with one number. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 3, USERS = 2 };

static union {
    sem_t semaphore;
    pthread_mutex_t mutex;
    pthread_cond_t condition;
} place;
static int terminal, counter;

static void *take(void *unused) {
    sem_wait(&place.semaphore);
    return unused;
}

static void *count(void *unused) {
    pthread_mutex_lock(&place.mutex);
    counter++;
    pthread_mutex_unlock(&place.mutex);
    return unused;
}

static void *notify(void *unused) {
    pthread_cond_signal(&place.condition);
    return unused;
}

static void *ask(void *unused) {
    if (fcntl(terminal, F_GETFD) < 0) abort();
    return unused;
}

static void use(void *(*routine)(void *)) {
    pthread_t users[USERS];
    for (int i = 0; i < USERS; i++) pthread_create(&users[i], 0, routine, 0);
    for (int i = 0; i < USERS; i++) pthread_join(users[i], 0);
}

int main(void) {
    for (int i = 0; i < ROUNDS; i++) {
        sem_init(&place.semaphore, 0, USERS);
        use(take);
        sem_destroy(&place.semaphore);
        pthread_mutex_init(&place.mutex, 0);
        use(count);
        pthread_mutex_destroy(&place.mutex);
        pthread_cond_init(&place.condition, 0);
        use(notify);
        pthread_cond_destroy(&place.condition);
        // Whoever opens this is not seen to: its number is an earlier file's.
        terminal = posix_openpt(O_RDWR);
        if (terminal < 0) terminal = open("/dev/null", O_RDWR);
        use(ask);
        close(terminal);
    }
    printf("%d\n", counter);
    return 0;
}
