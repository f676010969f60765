/* Two threads that use sets, connections and pipes of their own, and one variable without anything that
   orders them: a race. */
#include <arpa/inet.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

int shared;

static void talk_to_itself(void) {
    int ends[2], set = epoll_create1(0);
    char letter = 'a';
    pipe(ends);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event);
    write(ends[1], &letter, 1);
    epoll_wait(set, &event, 1, -1);
    read(ends[0], &letter, 1);
    close(ends[0]), close(ends[1]), close(set);
}

static void *first(void *unused) {
    (void)unused;
    shared = 1;
    talk_to_itself();
    return 0;
}

static void *second(void *unused) {
    (void)unused;
    talk_to_itself();
    shared = 2;
    return 0;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], 0, first, 0);
    pthread_create(&threads[1], 0, second, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}
