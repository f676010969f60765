// A handle of a thread that is used when the thread may have been joined, or has ended, detached; or, if a second
// argument is given, only before.
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static pthread_t worker;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int is_safe, is_joined;

static void *works(void *unused) {
    usleep(20000);
    return unused;
}

static void *detaches_itself(void *unused) {
    pthread_detach(pthread_self());
    return works(unused);
}

static void *pokes(void *unused) {
    if (is_safe) pthread_mutex_lock(&mutex);
    if (!is_safe || !is_joined) pthread_kill(worker, 0);
    if (is_safe) pthread_mutex_unlock(&mutex);
    return unused;
}

static void create(void *(*routine)(void *), int is_detached) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (is_detached) pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_create(&worker, &attributes, routine, NULL);
}

int main(int count, char **words) {
    const char *how = words[1];
    is_safe = count > 2;
    if (!strcmp(how, "joined")) {
        pthread_t other;
        create(works, 0);
        pthread_create(&other, NULL, pokes, NULL);
        usleep(10000);
        if (is_safe) pthread_mutex_lock(&mutex);
        pthread_join(worker, NULL);
        is_joined = 1;
        if (is_safe) pthread_mutex_unlock(&mutex);
        pthread_join(other, NULL);
    }
    if (!strcmp(how, "itself") || !strcmp(how, "detached")) {
        create(!strcmp(how, "itself") ? detaches_itself : works, !strcmp(how, "detached"));
        if (!is_safe) pthread_kill(worker, 0);
    }
    if (!strcmp(how, "later")) {
        create(works, 0);
        if (is_safe) pthread_kill(worker, 0);
        pthread_detach(worker);
        if (!is_safe) pthread_kill(worker, 0);
    }
    if (!strcmp(how, "ended")) {
        create(works, 0);
        usleep(50000);
        pthread_detach(worker); /* It has ended, and its handle has not. */
    }
    usleep(50000);
}
