// A local variable whose fields two threads use.
#include <pthread.h>
#include <stdio.h>

struct job {
    pthread_mutex_t mutex;
    int padding, done;
};

static void *work(void *place) {
    struct job *job = place;
    pthread_mutex_lock(&job->mutex);
    job->done = 1;
    pthread_mutex_unlock(&job->mutex);
    return NULL;
}

int main(void) {
    struct job job = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    pthread_t worker;
    pthread_create(&worker, NULL, work, &job);
    for (int done = 0; !done;) {
        pthread_mutex_lock(&job.mutex);
        done = job.done;
        pthread_mutex_unlock(&job.mutex);
    }
    pthread_join(worker, NULL);
    puts("done");
    return 0;
}
