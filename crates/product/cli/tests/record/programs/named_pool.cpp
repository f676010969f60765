// A pool of threads with a queue of functions, and a server with members of its own.
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

class Pool {
  public:
    explicit Pool(int count) {
        for (int i = 0; i < count; i++)
            threads_.emplace_back([this] { work(); });
    }

    void submit(std::function<void()> job) {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            jobs_.push_back(std::move(job));
        }
        submitted_++;
        changed_.notify_one();
    }

    void stop() {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            stopped_ = true;
        }
        changed_.notify_all();
        for (std::thread &thread : threads_)
            thread.join();
    }

    void work() {
        while (true) {
            std::function<void()> job;
            {
                std::unique_lock<std::mutex> guard(mutex_);
                changed_.wait(guard, [this] { return stopped_ || !jobs_.empty(); });
                if (jobs_.empty())
                    return;
                job = std::move(jobs_.front());
                jobs_.pop_front();
            }
            job();
            submitted_--;
        }
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> jobs_;
    bool stopped_ = false;
    int submitted_ = 0;
    std::vector<std::thread> threads_;
};

namespace web {
struct Counters {
    long requests = 0, errors = 0;
};

class Base {
  public:
    virtual ~Base() = default;

  protected:
    int state_ = 0;
};

class Server : public Base {
  public:
    void handle() {
        counters_.errors++;
        state_++;
    }

  private:
    std::string name_ = "server";
    Counters counters_;
};
} // namespace web

int main() {
    auto server = std::make_unique<web::Server>();
    auto shared = std::make_shared<web::Counters>();
    auto *pool = new Pool(2);
    for (int i = 0; i < 4; i++)
        pool->submit([&server, shared] {
            server->handle();
            shared->requests++;
        });
    pool->stop();
    delete pool;
    return 0;
}
