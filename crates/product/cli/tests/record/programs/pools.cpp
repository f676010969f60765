#include <memory_resource>
#include <list>
#include <thread>
#include <mutex>
#include <cstdio>
template <class Pool> long run() {
    Pool pool; std::mutex m, pm; long *box[40] = {}; long s = 0;
    std::thread a([&] { for (int i = 0; i < 40; i++) { size_t n = i % 10 ? 40 : 1 << 23; long *p; { std::lock_guard<std::mutex> q(pm); p = (long *)pool.allocate(n); } *p = i; std::lock_guard<std::mutex> g(m); box[i] = p; } });
    std::thread b([&] { for (int i = 0; i < 40; i++) { size_t n = i % 10 ? 40 : 1 << 23; long *p; { std::lock_guard<std::mutex> g(m); p = box[i]; box[i] = nullptr; } if (p) { s += *p; std::lock_guard<std::mutex> q(pm); pool.deallocate(p, n); } } });
    a.join(); b.join();
    for (int i = 0; i < 40; i++) if (box[i]) pool.deallocate(box[i], i % 10 ? 40 : 1 << 23);
    std::pmr::list<int> l(&pool); std::mutex lm;
    std::thread c([&] { for (int i = 0; i < 20; i++) { std::lock_guard<std::mutex> g(lm); l.push_back(i); } });
    std::thread d([&] { for (int i = 0; i < 20; i++) { std::lock_guard<std::mutex> g(lm); if (!l.empty()) l.pop_front(); } });
    c.join(); d.join();
    return s >= 0;
}
int main() { printf("%ld %ld\n", run<std::pmr::unsynchronized_pool_resource>(), run<std::pmr::synchronized_pool_resource>()); }
