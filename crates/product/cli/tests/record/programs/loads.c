// Loads a library, runs it in two threads, one after the other, unloads it and loads another. The
// libraries are the arguments; each has a function `work`.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static void *run(void *work) {
    ((void (*)(void))work)();
    return 0;
}

int main(int count, char **arguments) {
    for (int i = 1; i < count; i++) {
        pthread_t threads[2];
        void *library = dlopen(arguments[i], RTLD_NOW);
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        void *work = dlsym(library, "work");
        for (int thread = 0; thread < 2; thread++) {
            pthread_create(&threads[thread], 0, run, work);
            pthread_join(threads[thread], 0);
        }
        printf("%d\n", *(int *)dlsym(library, "result"));
        dlclose(library);
    }
    return 0;
}
