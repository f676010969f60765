// Memory and handles that end when their last user is done, as the C++ library and programs do it. Nothing is wrong.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <list>
#include <locale>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

struct Node {
    int value = 0;
    explicit Node(int start) : value(start) {}
};

// Containers whose links the library writes: whoever takes the node out is the only one who has it.
template <class Container, class Take>
static int taken(Container &container, Take take) {
    std::mutex lock;
    std::atomic<int> sum{0};
    auto work = [&] {
        for (;;) {
            std::unique_ptr<Node> node;
            {
                std::lock_guard<std::mutex> guard(lock);
                if (container.empty()) return;
                node = take(container);
            }
            node->value++;
            sum += node->value;
        }
    };
    std::thread first(work), second(work);
    first.join();
    second.join();
    return sum;
}

static int lists() {
    std::list<std::unique_ptr<Node>> list;
    std::map<int, std::unique_ptr<Node>> map;
    std::deque<std::unique_ptr<Node>> deque;
    std::unordered_map<int, std::unique_ptr<Node>> table;
    for (int i = 0; i < 6; i++) {
        list.push_back(std::make_unique<Node>(i));
        map.emplace(i, std::make_unique<Node>(i));
        deque.push_back(std::make_unique<Node>(i));
        table.emplace(i, std::make_unique<Node>(i));
    }
    auto front = [](auto &from) {
        auto node = std::move(from.front());
        from.pop_front();
        return node;
    };
    auto first = [](auto &from) {
        auto node = std::move(from.begin()->second);
        from.erase(from.begin());
        return node;
    };
    return taken(list, front) + taken(map, first) + taken(deque, front) + taken(table, first);
}

// Who walks along such links finds no node that was taken out before.
template <class Container, class Look>
static int walked(Container &container, Look look) {
    std::mutex lock;
    int sum = 0;
    std::thread first([&] {
        std::lock_guard<std::mutex> guard(lock);
        for (auto &entry : container) sum += look(entry)++;
    });
    std::thread second([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        std::lock_guard<std::mutex> guard(lock);
        container.erase(container.begin());
    });
    first.join();
    second.join();
    return sum;
}

static int walks() {
    std::list<int> list{1, 2, 3};
    std::map<int, int> map{{1, 1}, {2, 2}, {3, 3}};
    auto itself = [](int &entry) -> int & { return entry; };
    auto value = [](auto &entry) -> int & { return entry.second; };
    return walked(list, itself) + walked(map, value);
}

// Counted references, with a lock that its last owner destroys.
struct Shared {
    std::mutex lock;
    std::string text;
};

static size_t counted() {
    auto shared = std::make_shared<Shared>();
    std::weak_ptr<Shared> weak = shared;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++) {
        threads.emplace_back([shared, i] {
            std::lock_guard<std::mutex> guard(shared->lock);
            shared->text += std::to_string(i);
        });
    }
    threads.emplace_back([weak] {
        if (auto strong = weak.lock()) {
            std::lock_guard<std::mutex> guard(strong->lock);
            strong->text += "w";
        }
    });
    shared.reset();
    for (auto &thread : threads) thread.join();
    return threads.size();
}

// Values that come out of another thread.
static int promised() {
    auto task = std::async(std::launch::async, [] { return std::make_unique<Node>(7); });
    std::promise<std::unique_ptr<Node>> promise;
    auto future = promise.get_future();
    std::thread maker([&] { promise.set_value(std::make_unique<Node>(8)); });
    int sum = task.get()->value + future.get()->value;
    maker.join();
    return sum;
}

// A queue of functions that own what they use.
static int queued() {
    std::mutex lock;
    std::condition_variable filled;
    std::deque<std::function<int()>> queue;
    bool is_over = false;
    int sum = 0;
    std::thread worker([&] {
        for (;;) {
            std::function<int()> job;
            {
                std::unique_lock<std::mutex> guard(lock);
                filled.wait(guard, [&] { return is_over || !queue.empty(); });
                if (queue.empty()) return;
                job = std::move(queue.front());
                queue.pop_front();
            }
            sum += job();
        }
    });
    for (int i = 0; i < 4; i++) {
        auto node = std::make_shared<Node>(i);
        std::lock_guard<std::mutex> guard(lock);
        queue.push_back([node] { return node->value; });
        filled.notify_one();
    }
    {
        std::lock_guard<std::mutex> guard(lock);
        is_over = true;
        filled.notify_one();
    }
    worker.join();
    return sum;
}

// Objects that the library counts references to, out of sight, and then has the program destroy.
struct Thrown {
    int *values = new int[2]{1, 2};
    Thrown() = default;
    Thrown(const Thrown &other) : values(new int[2]{other.values[0], other.values[1]}) {}
    ~Thrown() { delete[] values; }
};

struct Facet : std::locale::facet {
    static std::locale::id id;
    int *values = new int[2]{3, 4};
    ~Facet() override { delete[] values; }
};
std::locale::id Facet::id;

static int caught() {
    auto *first = new std::exception_ptr(std::make_exception_ptr(Thrown()));
    auto *second = new std::exception_ptr(*first);
    int sum = 0;
    std::thread thread([&] {
        try {
            std::rethrow_exception(*second);
        } catch (Thrown &thrown) {
            sum += thrown.values[1];
        }
        delete second;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    delete first;
    thread.join();
    return sum;
}

static int localized() {
    auto *first = new std::locale(std::locale::classic(), new Facet);
    auto *second = new std::locale(*first);
    int sum = 0;
    std::thread thread([&] {
        sum += std::use_facet<Facet>(*second).values[1];
        delete second;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    delete first;
    thread.join();
    return sum;
}

int main() {
    std::printf("%d %d %zu %d %d\n", lists(), walks(), counted(), promised(), queued());
    std::printf("%d %d\n", caught(), localized());
    return 0;
}
