/* unlock_by_other.c, fixed: a semaphore, which any thread may post. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static sem_t done;

static void *finish(void *nothing) {
    puts("working");
    sem_post(&done);
    return nothing;
}

int main(void) {
    pthread_t worker;
    sem_init(&done, 0, 0);
    pthread_create(&worker, NULL, finish, NULL);
    sem_wait(&done);
    puts("done");
    pthread_join(worker, NULL);
    return 0;
}
