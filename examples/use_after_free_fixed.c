/* use_after_free.c, fixed: the session ends when the client has. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct session {
    int requests;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct session *session;

static void *request(void *nothing) {
    pthread_mutex_lock(&lock);
    session->requests++;
    pthread_mutex_unlock(&lock);
    return nothing;
}

static void *end(void *nothing) {
    pthread_mutex_lock(&lock);
    free(session);
    pthread_mutex_unlock(&lock);
    return nothing;
}

int main(void) {
    pthread_t client, reaper;
    session = calloc(1, sizeof *session);
    pthread_create(&client, NULL, request, NULL);
    pthread_join(client, NULL);
    pthread_create(&reaper, NULL, end, NULL);
    pthread_join(reaper, NULL);
    puts("the session is over");
    return 0;
}
