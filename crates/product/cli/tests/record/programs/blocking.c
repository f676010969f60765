// One thread after another waits in the kernel, each for what `main` does only after it has counted:
// if a wait stopped the others, the program would never end.
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int ends[2], pair[2], listener;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t length;
volatile int counter;

static void *by_read(void *unused) {
    char byte;
    return read(ends[0], &byte, 1) == 1 ? 0 : unused;
}

static void *by_poll(void *unused) {
    struct pollfd file = {ends[0], POLLIN, 0};
    char byte;
    return poll(&file, 1, -1) == 1 && read(ends[0], &byte, 1) == 1 ? 0 : unused;
}

static void *by_select(void *unused) {
    fd_set files;
    char byte;
    FD_ZERO(&files);
    FD_SET(ends[0], &files);
    return select(ends[0] + 1, &files, 0, 0, 0) == 1 && read(ends[0], &byte, 1) == 1 ? 0 : unused;
}

static void *by_epoll(void *unused) {
    struct epoll_event event = {EPOLLIN, {0}};
    int set = epoll_create1(0);
    char byte;
    epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event);
    int count = epoll_wait(set, &event, 1, -1);
    close(set);
    return count == 1 && read(ends[0], &byte, 1) == 1 ? 0 : unused;
}

static void *by_recv(void *unused) {
    char byte;
    return recv(pair[0], &byte, 1, 0) == 1 ? 0 : unused;
}

static void *by_accept(void *unused) {
    int file = accept(listener, 0, 0);
    close(file);
    return file >= 0 ? 0 : unused;
}

static void *by_sigwait(void *unused) {
    sigset_t set;
    int signal;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    return sigwait(&set, &signal) == 0 ? 0 : unused;
}

static void *by_waitpid(void *unused) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        char byte;
        _exit(read(ends[0], &byte, 1) != 1);
    }
    return waitpid(child, &status, 0) == child && status == 0 ? 0 : unused;
}

static void tell_pipe(void) { write(ends[1], "", 1); }
static void tell_pair(void) { send(pair[1], "", 1, 0); }
static void tell_process(void) { kill(getpid(), SIGUSR1); }
static void tell_listener(void) {
    int file = socket(AF_UNIX, SOCK_STREAM, 0);
    connect(file, (struct sockaddr *)&address, length);
    close(file);
}

static void try(const char *name, void *(*wait)(void *), void (*tell)(void)) {
    pthread_t thread;
    void *result;
    pthread_create(&thread, 0, wait, (void *)name);
    for (int i = 0; i < 2000; i++) counter++;
    usleep(1000);
    tell();
    pthread_join(thread, &result);
    printf("%s %s\n", name, result ? "failed" : "ended");
}

int main(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, 0);
    if (pipe(ends) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return 1;
    length = sizeof address.sun_family + 1 + sprintf(address.sun_path + 1, "reweave-%d", getpid());
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1)) return 1;
    try("read", by_read, tell_pipe);
    try("poll", by_poll, tell_pipe);
    try("select", by_select, tell_pipe);
    try("epoll_wait", by_epoll, tell_pipe);
    try("recv", by_recv, tell_pair);
    try("accept", by_accept, tell_listener);
    try("sigwait", by_sigwait, tell_process);
    try("waitpid", by_waitpid, tell_pipe);
    return 0;
}
