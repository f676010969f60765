// Loads a plugin three times; two threads use it each time.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static int (*count_up)(void);

static void *use(void *unused) {
    for (int time = 0; time < 3; time++) count_up();
    return unused;
}

int main(void) {
    for (int time = 0; time < 3; time++) {
        void *plugin = dlopen("./libplugin.so", RTLD_NOW);
        count_up = (int (*)(void))dlsym(plugin, "count_up");
        pthread_t one, two;
        pthread_create(&one, 0, use, 0);
        pthread_create(&two, 0, use, 0);
        pthread_join(one, 0);
        pthread_join(two, 0);
        printf("%d\n", count_up());
        dlclose(plugin);
    }
    return 0;
}
