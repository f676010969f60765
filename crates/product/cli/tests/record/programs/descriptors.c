/* A table by the number of a descriptor: the kernel gives a number again only after it was closed, so the two
   threads never use an entry at the same time. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

static int table[64];

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
    default:
        if (pipe(pair) != 0)
            return -1;
        close(pair[1]);
        return pair[0];
    }
}

static void *use(void *nothing) {
    for (int how = 0; how < 5; how++) {
        int file = opened(how);
        table[file]++;
        close(file);
    }
    FILE *stream = fopen("/dev/null", "r");
    table[fileno(stream)]++;
    fclose(stream);
    return nothing;
}

int main(void) {
    pthread_t first, second;
    pthread_create(&first, NULL, use, NULL);
    usleep(20000);
    pthread_create(&second, NULL, use, NULL);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    int sum = 0;
    for (int file = 0; file < 64; file++)
        sum += table[file];
    printf("%d\n", sum);
    return 0;
}
