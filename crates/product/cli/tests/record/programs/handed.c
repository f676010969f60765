/* Memory handed from thread to thread in ways that are easy to miss: sets of descriptors that are never
   read, datagrams, queues with names, queued signals, pipes with names. Each `box` is written by one
   thread before it says so, and read by the other after it was told. No two accesses race. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BOXES = 24, CROWD = 300 };
/* Not static: compilers move what is past calls that they know not to come back to this file. */
int box[BOXES];
static int total, locked;
static int unread[2], inner[2], late[2], messages[2], checked[2], crowd[CROWD][2];
static int formatted[2], unbuffered[2], sent[2], spliced[2];
static int set, outer, nested, crowded, signals_set, counter, signal_file, signal_polled;
static int bound, connected, listener, unix_listener, waiting;
static mqd_t queue;
static struct sockaddr_in place, datagrams;
static struct sockaddr_un unix_place;
static char folder[] = "handed-XXXXXX", pipe_name[64], stream_name[64];
static sigset_t queued, polled;
static pthread_barrier_t start;

static void put(int which) { box[which] = which + 1; }
static void take(int which) { __atomic_fetch_add(&total, box[which], __ATOMIC_RELAXED); }

static void add(int to, int file, int flags) {
    struct epoll_event event = {.events = EPOLLIN | flags};
    epoll_ctl(to, EPOLL_CTL_ADD, file, &event);
}

static void await(int of) {
    struct epoll_event event;
    epoll_wait(of, &event, 1, -1);
}

static void *giver(void *unused) {
    (void)unused;
    char letter = 'a';
    put(0);
    write(unread[1], &letter, 1);
    put(1);
    write(inner[1], &letter, 1);
    put(2);
    write(crowd[CROWD - 1][1], &letter, 1);
    put(3);
    eventfd_write(counter, 1);
    put(4);
    send(connected, &letter, 1, 0);
    put(5);
    sendto(connected, &letter, 1, 0, (struct sockaddr *)&datagrams, sizeof datagrams);
    /* Some systems have no queues with names. */
    if (queue >= 0) put(6), mq_send(queue, &letter, 1, 0);
    put(7);
    sigqueue(getpid(), SIGUSR1, (union sigval){0});
    put(8);
    kill(getpid(), SIGUSR2);
    put(9);
    int file = open(pipe_name, O_WRONLY);
    put(10);
    write(file, &letter, 1);
    close(file);
    put(11);
    FILE *stream = fopen(stream_name, "w");
    put(12);
    fputs("line\n", stream);
    fclose(stream);
    put(13);
    struct iovec part = {&letter, 1};
    struct mmsghdr several = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
    sendmmsg(messages[1], &several, 1, 0);
    put(14);
    send(checked[1], &letter, 1, 0);
    put(15);
    int own = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    connect(own, (struct sockaddr *)&place, sizeof place);
    struct pollfd writable = {own, POLLOUT, 0};
    poll(&writable, 1, -1);
    fcntl(own, F_SETFL, 0);
    put(16);
    send(own, &letter, 1, 0);
    recv(own, &letter, 1, MSG_WAITALL);
    take(17);
    int near = socket(AF_UNIX, SOCK_STREAM, 0);
    connect(near, (struct sockaddr *)&unix_place, sizeof unix_place);
    put(18);
    send(near, &letter, 1, 0);
    close(own), close(near);
    put(19);
    kill(getpid(), SIGHUP);
    put(20);
    dprintf(formatted[1], "%d", 1);
    FILE *direct = fdopen(unbuffered[1], "w");
    setvbuf(direct, 0, _IONBF, 0);
    put(21);
    fprintf(direct, "%d %.1f", 1, 0.5);
    fclose(direct);
    int program = open("/proc/self/exe", O_RDONLY);
    put(22);
    sendfile(sent[1], program, 0, 1);
    put(23);
    splice(program, 0, spliced[1], 0, 1, 0);
    close(program);
    return 0;
}

static void *taker(void *unused) {
    (void)unused;
    char room[64];
    volatile size_t one = 1, most = sizeof room;
    await(set);
    take(0);
    await(outer);
    take(1);
    await(crowded);
    take(2);
    await(waiting);
    take(3);
    struct sockaddr_in from;
    socklen_t length = sizeof from;
    recvfrom(bound, room, one, 0, (struct sockaddr *)&from, &length);
    take(4);
    recv(bound, room, one, 0);
    take(5);
    if (queue >= 0) mq_receive(queue, room, most, 0), take(6);
    int signal;
    sigwait(&queued, &signal);
    take(7);
    struct signalfd_siginfo information;
    read(signal_file, &information, sizeof information);
    take(8);
    int file = open(pipe_name, O_RDONLY);
    take(9);
    read(file, room, one);
    take(10);
    close(file);
    FILE *stream = fopen(stream_name, "r");
    take(11);
    fgets(room, sizeof room, stream);
    take(12);
    fclose(stream);
    struct iovec part = {room, 1};
    struct mmsghdr several = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
    recvmmsg(messages[0], &several, 1, 0, 0);
    take(13);
    struct pollfd request[2] = {{checked[0], POLLIN, 0}, {-1, 0, 0}};
    poll(request, one, -1);
    take(14);
    request[0].fd = listener;
    poll(request, one, -1);
    take(15);
    int connection = accept(listener, 0, 0);
    recv(connection, room, one, 0);
    take(16);
    put(17);
    send(connection, room, 1, 0);
    close(connection);
    int near = accept(unix_listener, 0, 0);
    read(near, room, one);
    take(18);
    close(near);
    await(signals_set);
    take(19);
    read(formatted[0], room, one);
    take(20);
    read(unbuffered[0], room, one);
    take(21);
    read(sent[0], room, one);
    take(22);
    read(spliced[0], room, one);
    take(23);
    return 0;
}

/* One counter in a set of each. */
static void *watcher(void *unused) {
    (void)unused;
    int own = epoll_create1(0);
    add(own, counter, 0);
    pthread_barrier_wait(&start);
    await(own);
    take(3);
    close(own);
    return 0;
}

static void *locker(void *unused) {
    (void)unused;
    for (int i = 0; i < 3; i++) {
        flockfile(stdout);
        flockfile(stdout);
        locked++;
        funlockfile(stdout);
        funlockfile(stdout);
        if (ftrylockfile(stdout) == 0) {
            locked++;
            funlockfile(stdout);
        }
    }
    return 0;
}

static void set_up_sets(void) {
    pipe(unread), pipe(inner), pipe(late);
    pipe(formatted), pipe(unbuffered), pipe(sent), pipe(spliced);
    set = epoll_create1(0), outer = epoll_create1(0), nested = epoll_create1(0);
    crowded = epoll_create1(0), waiting = epoll_create1(0), signals_set = epoll_create1(0);
    counter = eventfd(0, 0);
    /* What has left the set is not waited for. */
    add(set, late[0], 0);
    epoll_ctl(set, EPOLL_CTL_DEL, late[0], 0);
    add(set, unread[0], 0);
    add(nested, inner[0], 0);
    add(outer, nested, 0);
    for (int i = 0; i < CROWD; i++) {
        pipe(crowd[i]);
        add(crowded, crowd[i][0], 0);
    }
    add(waiting, counter, 0);
    sigaddset(&queued, SIGUSR1);
    sigaddset(&polled, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &queued, 0);
    pthread_sigmask(SIG_BLOCK, &polled, 0);
    signal_file = signalfd(-1, &polled, 0);
    sigemptyset(&polled);
    sigaddset(&polled, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &polled, 0);
    signal_polled = signalfd(-1, &polled, 0);
    add(signals_set, signal_polled, 0);
}

static void set_up_sockets(void) {
    socklen_t length = sizeof place;
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    datagrams = place;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    bind(listener, (struct sockaddr *)&place, sizeof place);
    listen(listener, 1);
    getsockname(listener, (struct sockaddr *)&place, &length);
    bound = socket(AF_INET, SOCK_DGRAM, 0);
    bind(bound, (struct sockaddr *)&datagrams, sizeof datagrams);
    getsockname(bound, (struct sockaddr *)&datagrams, &length);
    connected = socket(AF_INET, SOCK_DGRAM, 0);
    connect(connected, (struct sockaddr *)&datagrams, sizeof datagrams);
    unix_listener = socket(AF_UNIX, SOCK_STREAM, 0);
    unix_place.sun_family = AF_UNIX;
    snprintf(unix_place.sun_path, sizeof unix_place.sun_path, "%s/socket", folder);
    bind(unix_listener, (struct sockaddr *)&unix_place, sizeof unix_place);
    listen(unix_listener, 1);
    socketpair(AF_UNIX, SOCK_DGRAM, 0, messages);
    socketpair(AF_UNIX, SOCK_STREAM, 0, checked);
}

int main(void) {
    mkdtemp(folder);
    snprintf(pipe_name, sizeof pipe_name, "%s/pipe", folder);
    snprintf(stream_name, sizeof stream_name, "%s/stream", folder);
    mkfifo(pipe_name, 0600);
    mkfifo(stream_name, 0600);
    set_up_sets();
    set_up_sockets();
    char queue_name[64];
    snprintf(queue_name, sizeof queue_name, "/reweave-handed-%d", (int)getpid());
    struct mq_attr attributes = {.mq_maxmsg = 2, .mq_msgsize = 64};
    queue = mq_open(queue_name, O_CREAT | O_RDWR, 0600, &attributes);
    mq_unlink(queue_name);
    pthread_barrier_init(&start, 0, 3);
    pthread_t threads[6];
    void *(*bodies[6])(void *) = {watcher, watcher, giver, taker, locker, locker};
    for (int i = 0; i < 6; i++) {
        if (i == 2) pthread_barrier_wait(&start);
        pthread_create(&threads[i], 0, bodies[i], 0);
    }
    for (int i = 0; i < 6; i++) pthread_join(threads[i], 0);
    mq_close(queue);
    unlink(pipe_name), unlink(stream_name), unlink(unix_place.sun_path);
    rmdir(folder);
    printf("%d\n", total);
    return 0;
}
