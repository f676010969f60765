/* A session that is freed while another thread may still use it.
 *
 * Wrong: both threads hold the lock, but nothing says that the request comes first.
 * An ordinary run: the session is ended long after the request.
 * reweave: the request can use the session after it was freed. There is no race: the lock keeps the two apart.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
    usleep(20000); /* nobody has asked for anything for a while */
    pthread_mutex_lock(&lock);
    free(session);
    pthread_mutex_unlock(&lock);
    return nothing;
}

int main(void) {
    pthread_t client, reaper;
    session = calloc(1, sizeof *session);
    pthread_create(&client, NULL, request, NULL);
    pthread_create(&reaper, NULL, end, NULL);
    pthread_join(client, NULL);
    pthread_join(reaper, NULL);
    puts("the session is over");
    return 0;
}
