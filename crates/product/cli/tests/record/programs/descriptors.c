/* Tables by the number of a descriptor: the kernel gives a number again only after it was closed, so no two
   threads use an entry at the same time. What the numbers do not order races. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static int table[64];
static int shared;
static int ends[2];
static int mail[2];

/* A message with a descriptor in it. */
struct parcel {
    struct msghdr head;
    struct iovec bytes;
    char byte;
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
};

static void wrap(struct parcel *parcel) {
    memset(parcel, 0, sizeof *parcel);
    parcel->bytes = (struct iovec){&parcel->byte, 1};
    parcel->head = (struct msghdr){.msg_iov = &parcel->bytes, .msg_iovlen = 1,
                                   .msg_control = parcel->control, .msg_controllen = sizeof parcel->control};
}

static void post(int file) {
    struct parcel parcel;
    wrap(&parcel);
    struct cmsghdr *head = CMSG_FIRSTHDR(&parcel.head);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof file);
    memcpy(CMSG_DATA(head), &file, sizeof file);
    sendmsg(mail[0], &parcel.head, 0);
}

static int received(void) {
    struct parcel parcel;
    int file;
    wrap(&parcel);
    recvmsg(mail[1], &parcel.head, 0);
    memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&parcel.head)), sizeof file);
    return file;
}

static int opened(int how) {
    int pair[2];
    switch (how) {
    case 0:
        return open("/dev/null", O_RDONLY);
    case 1:
        return socket(AF_UNIX, SOCK_STREAM, 0);
    case 2:
        return dup(0);
    case 3:
        return eventfd(0, 0);
    case 4:
        return memfd_create("memory", 0);
    default:
        if (pipe(pair) != 0)
            return -1;
        close(pair[1]);
        return pair[0];
    }
}

static void use(void) {
    for (int how = 0; how < 6; how++) {
        int file = opened(how);
        table[file]++;
        close(file);
    }
    FILE *stream = fopen("/dev/null", "r");
    table[fileno(stream)]++;
    fclose(stream);
    DIR *folder = opendir("/");
    table[dirfd(folder)]++;
    closedir(folder);
    folder = fdopendir(open("/", O_RDONLY | O_DIRECTORY));
    table[dirfd(folder)]++;
    closedir(folder);
    int file = received();
    table[file]++;
    close(file);
}

/* Each thread closes what it opens. */
static void *own(void *nothing) {
    use();
    return nothing;
}

/* What comes before one thread's first descriptor and after the other's last is not ordered. */
static void *before(void *nothing) {
    shared = 1;
    close(opened(0));
    return nothing;
}

static void *after(void *nothing) {
    close(opened(0));
    shared = 2;
    return nothing;
}

/* One thread opens, another closes, and tells nobody. */
static void *closes(void *nothing) {
    int file;
    while (read(ends[0], &file, sizeof file) == sizeof file && file >= 0) {
        table[file]++;
        close(file);
    }
    return nothing;
}

static void hand_over(int file) {
    if (file >= 0)
        table[file]++;
    write(ends[1], &file, sizeof file);
}

static void *opens(void *nothing) {
    hand_over(dup(0));
    return nothing;
}

int main(int count, char **words) {
    const char *how = count > 1 ? words[1] : "own";
    pthread_t threads[2];
    void *(*first)(void *) = own, *(*second)(void *) = own;
    if (strcmp(how, "apart") == 0) {
        first = before, second = after;
        /* As daemons do. */
        for (int file = 3; file < 64; file++)
            close(file);
    }
    if (strcmp(how, "own") == 0) {
        socketpair(AF_UNIX, SOCK_STREAM, 0, mail);
        post(0);
        post(0);
    }
    if (strcmp(how, "handed") == 0 || strcmp(how, "opened") == 0) {
        pipe(ends);
        pthread_create(&threads[0], NULL, closes, NULL);
        for (int round = 0; round < 3; round++) {
            if (strcmp(how, "handed") == 0) {
                hand_over(dup(0));
            } else {
                pthread_create(&threads[1], NULL, opens, NULL);
                pthread_detach(threads[1]);
            }
            usleep(20000);
        }
        hand_over(-1);
        pthread_join(threads[0], NULL);
    } else {
        pthread_create(&threads[0], NULL, first, NULL);
        usleep(20000);
        pthread_create(&threads[1], NULL, second, NULL);
        pthread_join(threads[0], NULL);
        pthread_join(threads[1], NULL);
    }
    int sum = shared;
    for (int file = 0; file < 64; file++)
        sum += table[file];
    printf("%d\n", sum);
    return 0;
}
