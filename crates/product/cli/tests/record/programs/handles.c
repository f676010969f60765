// Handles that one thread ends and another uses. The first argument says which; with a second one, "safe", the end
// waits for the last use.
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spinlock;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static FILE *stream;
static int sockets[2];

static void *read_lock(void *unused) {
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    return unused;
}

static void *destroy_rwlock(void *unused) {
    pthread_rwlock_destroy(&rwlock);
    return unused;
}

static void *spin_lock(void *unused) {
    pthread_spin_lock(&spinlock);
    pthread_spin_unlock(&spinlock);
    return unused;
}

static void *destroy_spinlock(void *unused) {
    pthread_spin_destroy(&spinlock);
    return unused;
}

static void *notify(void *unused) {
    pthread_cond_signal(&condition);
    return unused;
}

static void *destroy_condition(void *unused) {
    pthread_cond_destroy(&condition);
    return unused;
}

static void *post(void *unused) {
    sem_post(&semaphore);
    return unused;
}

static void *destroy_semaphore(void *unused) {
    sem_destroy(&semaphore);
    return unused;
}

static void *print(void *unused) {
    fputs("text", stream);
    return unused;
}

static void *close_stream(void *unused) {
    fclose(stream);
    return unused;
}

static void *send_byte(void *unused) {
    send(sockets[0], "x", 1, MSG_NOSIGNAL);
    return unused;
}

static void *close_socket(void *unused) {
    close(sockets[0]);
    return unused;
}

static void *copy(void *unused) {
    dup2(sockets[0], 100);
    return unused;
}

// Destroying a condition waits for those who wait on it, until somebody wakes them.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t waited = PTHREAD_COND_INITIALIZER;

static void *wait_once(void *unused) {
    pthread_mutex_lock(&lock);
    pthread_cond_wait(&waited, &lock);
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *wake_late(void *unused) {
    usleep(200000);
    pthread_mutex_lock(&lock);
    pthread_cond_broadcast(&waited);
    pthread_mutex_unlock(&lock);
    return unused;
}

static void destroy_waited(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, wait_once, NULL);
    usleep(50000);
    pthread_create(&threads[1], NULL, wake_late, NULL);
    pthread_cond_destroy(&waited);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

static struct {
    const char *name;
    void *(*use)(void *), *(*end)(void *);
} ways[] = {
    {"rwlock", read_lock, destroy_rwlock}, {"spinlock", spin_lock, destroy_spinlock},
    {"condition", notify, destroy_condition}, {"semaphore", post, destroy_semaphore},
    {"stream", print, close_stream}, {"socket", send_byte, close_socket},
    {"copy", copy, close_socket},
};

int main(int count, char **words) {
    pthread_t user, ender;
    pthread_spin_init(&spinlock, 0);
    sem_init(&semaphore, 0, 0);
    stream = fopen("/dev/null", "w");
    socketpair(AF_UNIX, SOCK_STREAM, 0, sockets);
    for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (strcmp(words[1], ways[i].name)) continue;
        pthread_create(&user, NULL, ways[i].use, NULL);
        if (count > 2) pthread_join(user, NULL);
        else usleep(20000);
        pthread_create(&ender, NULL, ways[i].end, NULL);
        if (count == 2) pthread_join(user, NULL);
        pthread_join(ender, NULL);
    }
    if (!strcmp(words[1], "waiting")) destroy_waited();
    puts("done");
    return 0;
}
