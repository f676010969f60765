/* Functions of the C library, each with memory of its own: `r_name` is what it reads and `w_name` what it
   writes. The first thread looks at every byte in the end, so that each is a variable. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <math.h>
#include <netdb.h>
#include <pthread.h>
#include <regex.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

int __xpg_strerror_r(int error, char *to, size_t room);

static int descending(const void *a, const void *b) { return *(int *)b - *(int *)a; }
static int printed(const char *format, ...) {
    va_list list;
    va_start(list, format);
    int result = vprintf(format, list);
    va_end(list);
    return result;
}

/* Compilers leave out calls of which they know that only the result counts. */
static volatile long used;
#define USE(result) (used = (long)(result))

static char room[256];
static FILE *file;
static int descriptor, pipes[2];
static sem_t semaphore;
static pthread_attr_t attributes;
static pthread_mutexattr_t mutex_attributes;
static struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };

/* The name, what is there to be read, how many bytes are there to be written, and the call. */
#define ALL(X) \
    X(puts, "hello", 1, puts(r_puts)) \
    X(printf, "hello", 4, printf("%d%f%.1Lf%s%n\n", 1, 2.0, 3.0L, r_printf, (int *)w_printf)) \
    X(vprintf, "hello", 1, printed("%d%d%d%d%d%d%d%s\n", 1, 2, 3, 4, 5, 6, 7, r_vprintf)) \
    X(fprintf, "hello", 1, fprintf(file, "%*d%s", 5, 1, r_fprintf)) \
    X(dprintf, "hello", 1, dprintf(descriptor, "%-9s", r_dprintf)) \
    X(snprintf, "hello", 16, snprintf(w_snprintf, 16, "%.3s", r_snprintf)) \
    X(asprintf, "hello", 8, asprintf((char **)w_asprintf, "%hhd%s", 1, r_asprintf)) \
    X(sscanf, "7 ab 2.5 x", 40, sscanf(r_sscanf, "%d%7s%lf%*c%c%n%d", w_sscanf, w_sscanf + 8, w_sscanf + 16, w_sscanf + 24, w_sscanf + 28, w_sscanf + 32)) \
    X(fscanf, "", 8, (rewind(file), fscanf(file, "%hd", w_fscanf))) \
    X(strdup, "hello", 1, free(strdup(r_strdup))) \
    X(strndup, "hello", 1, free(strndup(r_strndup, 3))) \
    X(strstr, "hello", 1, USE(strstr(r_strstr, "l"))) \
    X(strcasestr, "hello", 1, USE(strcasestr("a hell", r_strcasestr))) \
    X(memmem, "hello", 1, USE(memmem(r_memmem, 4, "x", 1))) \
    X(memrchr, "hello", 1, USE(memrchr(r_memrchr, 'h', 3))) \
    X(strrchr, "hello", 1, USE(strrchr(r_strrchr, 'h'))) \
    X(strchrnul, "hello", 1, USE(strchrnul(r_strchrnul, 'l'))) \
    X(strnlen, "hello", 1, USE(strnlen(r_strnlen, 3))) \
    X(strspn, "hello", 1, USE(strspn(r_strspn, "he"))) \
    X(strcspn, "hello", 1, USE(strcspn(r_strcspn, "l"))) \
    X(strpbrk, "hello", 1, USE(strpbrk("a", r_strpbrk))) \
    X(strcasecmp, "hello", 1, USE(strcasecmp(r_strcasecmp, "HELp"))) \
    X(strncasecmp, "hello", 1, USE(strncasecmp(r_strncasecmp, "HELL", 2))) \
    X(strxfrm, "hello", 16, strxfrm(w_strxfrm, r_strxfrm, 16)) \
    X(strtol, "12x", 8, strtol(r_strtol, (char **)w_strtol, 10)) \
    X(strtok, ",", 1, strtok(strcpy(room, "a,b"), r_strtok)) \
    X(strptime, "%Y", 56, strptime("1999", r_strptime, (struct tm *)w_strptime)) \
    X(xpg_strerror_r, "", 64, __xpg_strerror_r(2, w_xpg_strerror_r, 64)) \
    X(wcslen, "abc\0def\0\0\0\0", 1, USE(wcslen((wchar_t *)r_wcslen))) \
    X(mbstowcs, "abc", 32, mbstowcs((wchar_t *)w_mbstowcs, r_mbstowcs, 8)) \
    X(wcstombs, "", 16, wcstombs(w_wcstombs, L"abc", 16)) \
    X(regcomp, "a*", 64, regcomp((regex_t *)w_regcomp, r_regcomp, 0)) \
    X(ctime_r, "\0\0\0\0\0\0\0", 32, ctime_r((time_t *)r_ctime_r, w_ctime_r)) \
    X(mktime, "", 56, mktime((struct tm *)w_mktime)) \
    X(clock_getres, "", 16, clock_getres(CLOCK_REALTIME, (struct timespec *)w_clock_getres)) \
    X(setitimer, "\0", 40, setitimer(ITIMER_REAL, (struct itimerval *)r_setitimer, (struct itimerval *)w_setitimer)) \
    X(times, "", 40, times((struct tms *)w_times)) \
    X(stat, "/", 160, stat(r_stat, (struct stat *)w_stat)) \
    X(stat_fails, "no such file", 160, stat(r_stat_fails, (struct stat *)w_stat_fails)) \
    X(fstat, "", 160, fstat(descriptor, (struct stat *)w_fstat)) \
    X(statfs, "/", 160, statfs(r_statfs, (struct statfs *)w_statfs)) \
    X(statvfs, "/", 160, statvfs(r_statvfs, (struct statvfs *)w_statvfs)) \
    X(readlink, "link", 16, readlink(r_readlink, w_readlink, 16)) \
    X(realpath, "/", 16, realpath(r_realpath, w_realpath)) \
    X(unlink, "link", 1, unlink(r_unlink)) \
    X(pwritev, "hello", 1, pwritev(descriptor, &(struct iovec){ r_pwritev, 5 }, 1, 0)) \
    X(preadv, "", 16, preadv(descriptor, &(struct iovec){ w_preadv, 8 }, 1, 0)) \
    X(ioctl, "", 8, ioctl(pipes[0], FIONREAD, w_ioctl)) \
    X(timerfd_settime, "\0", 40, timerfd_settime(timerfd_create(CLOCK_MONOTONIC, 0), 0, (struct itimerspec *)r_timerfd_settime, (struct itimerspec *)w_timerfd_settime)) \
    X(qsort, "", 16, qsort(w_qsort, 4, 4, descending)) \
    X(sigaction, "", 160, sigaction(SIGUSR1, 0, (struct sigaction *)w_sigaction)) \
    X(sigprocmask, "\0", 16, sigprocmask(SIG_BLOCK, (sigset_t *)r_sigprocmask, (sigset_t *)w_sigprocmask)) \
    X(sem_getvalue, "", 8, sem_getvalue(&semaphore, (int *)w_sem_getvalue)) \
    X(rand_r, "", 8, rand_r((unsigned *)w_rand_r)) \
    X(uname, "", 400, uname((struct utsname *)w_uname)) \
    X(sysinfo, "", 120, sysinfo((struct sysinfo *)w_sysinfo)) \
    X(prctl, "", 20, prctl(PR_GET_NAME, w_prctl)) \
    X(pthread_getname_np, "", 20, pthread_getname_np(pthread_self(), w_pthread_getname_np, 20)) \
    X(pthread_attr_getstacksize, "", 16, pthread_attr_getstacksize(&attributes, (size_t *)w_pthread_attr_getstacksize)) \
    X(pthread_mutexattr_gettype, "", 16, pthread_mutexattr_gettype(&mutex_attributes, (int *)w_pthread_mutexattr_gettype)) \
    X(inet_ntop, "1234", 32, inet_ntop(AF_INET, r_inet_ntop, w_inet_ntop, 32)) \
    X(inet_pton, "1.2.3.4", 8, inet_pton(AF_INET, r_inet_pton, w_inet_pton)) \
    X(inet_aton, "no address", 8, inet_aton(r_inet_aton, (struct in_addr *)w_inet_aton)) \
    X(getaddrinfo, "80", 16, getaddrinfo("127.0.0.1", r_getaddrinfo, &hints, (struct addrinfo **)w_getaddrinfo)) \
    X(getsockname, "", 8, getsockname(pipes[0], 0, (socklen_t *)w_getsockname)) \
    X(frexp, "", 8, frexp(8, (int *)w_frexp)) \
    X(modff, "", 8, modff(1.5f, (float *)w_modff))

#define MEMORY(name, text, size, call) \
    char r_##name[40] __attribute__((aligned(16))) = text; \
    char w_##name[size] __attribute__((aligned(16)));
ALL(MEMORY)

static void *work(void *unused) {
#define CALL(name, text, size, call) call;
    ALL(CALL)
    return unused;
}

static __attribute__((noinline)) void look(volatile char *at, int count) {
    for (int i = 0; i < count; i++) at[i];
}

int main(void) {
    pthread_t thread;
    file = fopen("file", "w+");
    descriptor = open("other", O_RDWR | O_CREAT, 0600);
    pipe(pipes);
    sem_init(&semaphore, 0, 1);
    pthread_attr_init(&attributes);
    pthread_mutexattr_init(&mutex_attributes);
    symlink("abc", "link");
    setenv("TZ", "UTC", 1);
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, 0);
#define LOOK(name, text, size, call) look(r_##name, sizeof r_##name), look(w_##name, size);
    ALL(LOOK)
    return 0;
}
