/* Threads that still run, or processes that do, when the program ends. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int x;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *increments(void *p) {
    x++;
    return p;
}

static void *waits(void *p) {
    pthread_mutex_lock(&m);
    return p;
}

static void *late(void *p) {
    usleep(200000);
    x++;
    return p;
}

static void race(int joins) {
    pthread_t threads[2];
    pthread_create(&threads[0], 0, increments, 0);
    pthread_create(&threads[1], 0, increments, 0);
    if (!joins) return;
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
}

int main(int count, char **arguments) {
    const char *way = arguments[1];
    pthread_t thread;
    if (!strcmp(way, "running")) race(0);
    else if (!strcmp(way, "sleeping")) {
        pthread_create(&thread, 0, late, 0);
        pthread_create(&thread, 0, late, 0);
        exit(3);
    } else if (!strcmp(way, "blocked")) {
        pthread_mutex_lock(&m);
        pthread_create(&thread, 0, waits, 0);
        usleep(20000);
    } else if (!strcmp(way, "child")) {
        if (fork()) {
            wait(0);
            return 0;
        }
        race(1);
        exit(0);
    } else if (!strcmp(way, "daemon")) {
        daemon(1, 1);
        usleep(50000);
        race(1);
    }
    return 0;
}
