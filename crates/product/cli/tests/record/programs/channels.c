/* Memory handed from thread to thread through everything the kernel has for it: each `box` is written by
   one thread before it says so, and read by the other after it was told. No two accesses race. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BOXES = 18 };
int box[BOXES];
static int total;
static int plain[2], vectors[2], pair[2], polled[2], selected[2], closed[2], streams[2], copied[2];
static int counter, waker, set, listener, port, queue, semaphores;
static char path[] = "channels-XXXXXX";

static void put(int which) { box[which] = which + 1; }
static void take(int which) { total += box[which]; }

static void connect_to(struct sockaddr_in *address) {
    memset(address, 0, sizeof *address);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address->sin_port = (in_port_t)port;
}

static void *giver(void *unused) {
    (void)unused;
    char letter = 'a';
    put(0);
    write(plain[1], &letter, 1);
    put(1);
    struct iovec parts[2] = {{&letter, 1}, {&letter, 1}};
    writev(vectors[1], parts, 2);
    put(2);
    send(pair[1], &letter, 1, 0);
    put(3);
    write(polled[1], &letter, 1);
    put(4);
    write(selected[1], &letter, 1);
    put(5);
    close(closed[1]);
    put(6);
    eventfd_write(counter, 1);
    put(7);
    uint64_t one = 1;
    write(waker, &one, sizeof one);
    put(8);
    struct sockaddr_in address;
    connect_to(&address);
    int socket_of_mine = socket(AF_INET, SOCK_STREAM, 0);
    connect(socket_of_mine, (struct sockaddr *)&address, sizeof address);
    put(9);
    write(socket_of_mine, &letter, 1);
    put(10);
    shutdown(socket_of_mine, SHUT_WR);
    put(11);
    struct { long kind; char text[1]; } message = {1, {'a'}};
    msgsnd(queue, &message, 1, 0);
    put(12);
    struct sembuf raise = {0, 1, 0};
    semop(semaphores, &raise, 1);
    put(13);
    FILE *stream = fdopen(streams[1], "w");
    fprintf(stream, "%d\n", 1);
    fflush(stream);
    put(14);
    fputs("second\n", stream);
    fclose(stream);
    put(15);
    int duplicate = dup(copied[1]);
    write(duplicate, &letter, 1);
    close(duplicate);
    put(16);
    kill(getpid(), SIGUSR1);
    close(socket_of_mine);
    return 0;
}

static void *taker(void *unused) {
    (void)unused;
    char room[2];
    read(plain[0], room, 1);
    take(0);
    struct iovec parts[2] = {{room, 1}, {room + 1, 1}};
    readv(vectors[0], parts, 2);
    take(1);
    recv(pair[0], room, 1, 0);
    take(2);
    struct pollfd request = {polled[0], POLLIN, 0};
    poll(&request, 1, -1);
    take(3);
    fd_set files;
    FD_ZERO(&files);
    FD_SET(selected[0], &files);
    select(selected[0] + 1, &files, 0, 0, 0);
    take(4);
    while (read(closed[0], room, 1) > 0) {}
    take(5);
    eventfd_t value;
    eventfd_read(counter, &value);
    take(6);
    struct epoll_event event;
    epoll_wait(set, &event, 1, -1);
    take(7);
    int connection = accept(listener, 0, 0);
    take(8);
    read(connection, room, 1);
    take(9);
    while (read(connection, room, 1) > 0) {}
    take(10);
    struct { long kind; char text[1]; } message;
    msgrcv(queue, &message, 1, 0, 0);
    take(11);
    struct sembuf lower = {0, -1, 0};
    semop(semaphores, &lower, 1);
    take(12);
    FILE *stream = fdopen(streams[0], "r");
    char line[16];
    fgets(line, sizeof line, stream);
    take(13);
    fgets(line, sizeof line, stream);
    take(14);
    read(copied[0], room, 1);
    take(15);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    int signal;
    sigwait(&signals, &signal);
    take(16);
    fclose(stream);
    close(connection);
    return 0;
}

/* A lock of a file keeps these apart, since each opens it for itself. */
static void *locker(void *unused) {
    (void)unused;
    int file = open(path, O_RDWR);
    flock(file, LOCK_EX);
    box[17]++;
    flock(file, LOCK_UN);
    close(file);
    return 0;
}

int main(void) {
    close(mkstemp(path));
    pipe(plain), pipe(vectors), pipe2(polled, O_CLOEXEC), pipe(selected), pipe(closed);
    pipe(streams), pipe(copied);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    counter = eventfd(0, 0);
    waker = eventfd(0, EFD_NONBLOCK);
    set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    epoll_ctl(set, EPOLL_CTL_ADD, waker, &event);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address;
    connect_to(&address);
    bind(listener, (struct sockaddr *)&address, sizeof address);
    listen(listener, 1);
    socklen_t length = sizeof address;
    getsockname(listener, (struct sockaddr *)&address, &length);
    port = address.sin_port;
    queue = msgget(IPC_PRIVATE, 0600);
    semaphores = semget(IPC_PRIVATE, 1, 0600);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &signals, 0);
    pthread_t threads[4];
    pthread_create(&threads[0], 0, giver, 0);
    pthread_create(&threads[1], 0, taker, 0);
    pthread_create(&threads[2], 0, locker, 0);
    pthread_create(&threads[3], 0, locker, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    msgctl(queue, IPC_RMID, 0);
    semctl(semaphores, 0, IPC_RMID);
    unlink(path);
    printf("%d\n", total);
    return 0;
}
