/* circular_join.c, fixed: the threads are joined by who started them. */
#include <pthread.h>
#include <semaphore.h>

static pthread_t threads[3];
static sem_t started;

static void *await_next(void *number) {
    sem_wait(&started);
    return number;
}

int main(void) {
    static int numbers[] = {0, 1, 2};
    sem_init(&started, 0, 0);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, await_next, &numbers[i]);
    for (int i = 0; i < 3; i++)
        sem_post(&started);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
