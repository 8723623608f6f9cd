/* SPDX-License-Identifier: MIT */
/* After Chainer's examples/reinforcement_learning/ddpg_pendulum.py: a policy that swings a pendulum up, by deep
 * deterministic policy gradients (Lillicrap et al. 2015). ddpg_pendulum [EPISODES [STEPS]] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tanso.h>

enum { OBSERVED = 3, UNITS = 100, BATCH = 64, REPLAY = 1 << 20, REPLAY_START = 500 };
static const double torque = 2, reward_scale = 1e-3, tau = 1e-2, noise_scale = 0.4, discount = 0.99;

/* ---- OpenAI Gym's Pendulum-v0 ---- */

typedef struct pendulum {
    double angle, speed; /* 0: upright */
} pendulum;

static void observe(const pendulum *p, float seen[OBSERVED])
{
    seen[0] = (float)cos(p->angle);
    seen[1] = (float)sin(p->angle);
    seen[2] = (float)p->speed;
}

/* Gives the reward. */
static double push(pendulum *p, double action)
{
    double u = fmax(-torque, fmin(torque, action)), from_top = remainder(p->angle, 2 * 3.141592653589793);
    double cost = from_top * from_top + 0.1 * p->speed * p->speed + 0.001 * u * u;
    p->speed += (15 * sin(p->angle) + 3 * u) * 0.05;
    p->angle += p->speed * 0.05;
    p->speed = fmax(-8, fmin(8, p->speed));
    return -cost;
}

/* ---- networks ---- */

static tn_layer *network(int64_t in)
{
    tn_init small = {TN_INIT_HE_NORMAL, 1e-3};
    return tn_sequential(tn_linear(UNITS, .in = in), tn_relu_layer(), tn_linear(UNITS, .in = UNITS), tn_relu_layer(),
                         tn_linear(1, .in = UNITS, .weight = small));
}

static tn_array *act(tn_layer *policy, const tn_array *seen)
{
    return tn_multiply(tn_tanh(tn_forward(policy, seen)), torque);
}

static tn_array *value(tn_layer *q, const tn_array *seen, const tn_array *action)
{
    return tn_forward(q, tn_concatenate(TN_ARRAYS(seen, action), 1));
}

/* ---- learning ---- */

typedef struct transition {
    float seen[OBSERVED], action, reward, next[OBSERVED];
} transition;

typedef struct agent {
    tn_layer *q, *policy, *target_q, *target_policy;
    transition *replay;
    int64_t stored, steps, episode;
    tn_generator random;
    double mean_return;
} agent;

/* Columns first to stop - 1 of a minibatch of transitions. */
static tn_array *part(const tn_array *all, int first, int stop) { return tn_slice_axis(all, 1, first, stop, 1); }

/* A minibatch of what was seen: the value of actions learns what follows them, the policy what values more. */
static void learn(agent *a, tn_optimizer *optimizer_q, tn_optimizer *optimizer_policy)
{
    transition batch[BATCH];
    for (int i = 0; i < BATCH; i++)
        batch[i] = a->replay[tn_generator_below(&a->random, a->stored < REPLAY ? a->stored : REPLAY)];
    TN_SCOPE {
        tn_array *all = tn_from_host(batch, TN_SHAPE(BATCH, 2 * OBSERVED + 2), TN_FLOAT32), *target = NULL;
        tn_array *seen = part(all, 0, 3), *action = part(all, 3, 4), *reward = part(all, 4, 5), *next = part(all, 5, 8);
        TN_NO_GRAD {
            tn_array *after = value(a->target_q, next, act(a->target_policy, next));
            target = tn_add(reward, tn_multiply(after, discount)); /* a pendulum's episode has no end of its own */
        }
        tn_backward(tn_mean_squared_error(value(a->q, seen, action), target));
        tn_step(optimizer_q);
        tn_backward(tn_negative(tn_mean(value(a->q, seen, act(a->policy, seen)))));
        tn_step(optimizer_policy);
        tn_layer_clear_grads(a->q);
    }
    tn_layer_average(a->target_q, a->q, 1 - tau);
    tn_layer_average(a->target_policy, a->policy, 1 - tau);
}

/* An iteration is an episode. */
static tn_status episode(tn_updater *updater, void *user)
{
    agent *a = user;
    pendulum p = {(2 * tn_generator_uniform(&a->random) - 1) * 3.141592653589793,
                  2 * tn_generator_uniform(&a->random) - 1};
    double sum = 0;
    for (int64_t i = 0; i < a->steps && tn_ok(); i++) {
        transition *t = &a->replay[a->stored++ % REPLAY];
        observe(&p, t->seen);
        TN_SCOPE TN_NO_GRAD
            t->action = (float)tn_item(act(a->policy, tn_from_host(t->seen, TN_SHAPE(1, OBSERVED), TN_FLOAT32)));
        t->action += (float)(noise_scale * tn_generator_normal(&a->random));
        double reward = push(&p, t->action);
        t->reward = (float)(reward_scale * reward);
        observe(&p, t->next);
        sum += reward;
        if (a->stored >= REPLAY_START)
            learn(a, tn_updater_optimizer(updater, NULL), tn_updater_optimizer(updater, "policy"));
    }
    a->episode++;
    a->mean_return += (sum - a->mean_return) / (double)(a->episode < 100 ? a->episode : 100);
    printf("episode %d, return %.1f, mean %.1f\n", (int)a->episode, sum, a->mean_return);
    return tn_error_code();
}

int main(int argc, char **argv)
{
    double episodes = argc > 1 ? atof(argv[1]) : 1000;
    tn_status status = tn_set_device(tn_device_best());
    agent a = {.q = network(OBSERVED + 1), .policy = network(OBSERVED), .steps = argc > 2 ? atoi(argv[2]) : 200,
               .replay = calloc(REPLAY, sizeof *a.replay)};
    a.target_q = tn_layer_copy(a.q);
    a.target_policy = tn_layer_copy(a.policy);
    tn_optimizer *optimizer_q = tn_adam(a.q), *optimizer_policy = tn_adam(a.policy, .lr = 1e-4);
    tn_updater *updater = tn_updater_of(episode, NULL, optimizer_q, .user = &a,
                                        .optimizers = TN_OPTIMIZERS({"policy", optimizer_policy}));
    tn_trainer *trainer = tn_trainer_new(updater, .stop = TN_EVERY(episodes, TN_ITERATION), .out = "ddpg_result");
    if (status == TN_OK)
        status = a.replay ? tn_trainer_run(trainer) : TN_ERR_MEMORY;

    tn_trainer_free(trainer);
    tn_optimizer_free(optimizer_q);
    tn_optimizer_free(optimizer_policy);
    tn_layer *layers[] = {a.q, a.policy, a.target_q, a.target_policy};
    for (int i = 0; i < 4; i++)
        tn_layer_free(layers[i]);
    free(a.replay);
    return status != TN_OK;
}
