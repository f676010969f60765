// Variables of functions that other threads get pointers to.
#include <pthread.h>

struct progress {
    int started;
    struct {
        int count, failed;
    } jobs;
};

struct task {
    struct progress *progress;
    int *done;
};

static void *work(void *argument) {
    struct task *task = argument;
    task->progress->jobs.failed++;
    (*task->done)++;
    return 0;
}

static void run(void) {
    struct progress progress = {0};
    int done = 0;
    struct task task = {&progress, &done};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, work, &task);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
}

int main(void) {
    run();
    return 0;
}
