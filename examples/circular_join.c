/* Threads that wait for each other's end.
 *
 * Wrong: each of three threads joins the next one.
 * Every run: the program stands still.
 * reweave: `record --stall-timeout 1` ends the run, and `check` says who waits for whom.
 */
#include <pthread.h>
#include <semaphore.h>

static pthread_t threads[3];
static sem_t started;

static void *await_next(void *number) {
    sem_wait(&started);
    pthread_join(threads[(*(int *)number + 1) % 3], NULL);
    return NULL;
}

int main(void) {
    static int numbers[] = {0, 1, 2};
    sem_init(&started, 0, 0);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, await_next, &numbers[i]);
    for (int i = 0; i < 3; i++)
        sem_post(&started);
    pthread_exit(NULL);
}
