/* A handler interrupts a thread that is in the recorder most of the time, or posts from whatever thread
   the kernel chooses: one that begins, one that waits, one that ends. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int spun, posted, flag;
static pthread_t spinning;
static sem_t done;

static void on_spin(int number) {
    (void)number;
    __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
}

static void on_post(int number) {
    (void)number;
    sem_post(&done);
}

static void *send_both(void *nothing) {
    spun += 2;
    pthread_kill(spinning, SIGUSR1);
    posted += 2;
    kill(getpid(), SIGUSR2);
    return nothing;
}

static void *run_briefly(void *nothing) { return nothing; }

int main(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_post;
    action.sa_flags = SA_RESTART;
    sem_init(&done, 0, 0);
    signal(SIGUSR1, on_spin);
    sigaction(SIGUSR2, &action, 0);
    spinning = pthread_self();
    pthread_t sender, brief;
    pthread_create(&sender, 0, send_both, 0);
    pthread_create(&brief, 0, run_briefly, 0);
    while (!__atomic_load_n(&flag, __ATOMIC_ACQUIRE))
        sched_yield();
    spun += 3;
    while (sem_wait(&done) && errno == EINTR) {
    }
    posted += 3;
    pthread_join(sender, 0);
    pthread_join(brief, 0);
    printf("%d %d\n", spun, posted);
    return 0;
}
