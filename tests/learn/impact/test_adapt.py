"""The few-shot correction where the truth is known: a teacher the base model learned, plus a bias it cannot know."""

from dataclasses import replace

import numpy as np
import pytest
from sealed import reseal

from carom.compare.metrics import coverage, relative_error, summary
from carom.core.errors import CaromError, ModelError
from carom.engines.contact_frames import contact_frames, to_world
from carom.learn import adapt, fine_tune
from carom.learn.impact.adapted_files import load_model, save_model
from carom.learn.impact.dataset import generate
from carom.learn.impact.hypotheses import ALONE
from carom.learn.impact.sample import sample_strikes
from carom.learn.impact.training import train
from carom.scenes.parameters import defaults
from carom.scenes.strike import builtin
from carom.state import Impacts

SCENE = builtin("square")
TRUE = {"striker_friction": 0.25, "restitution": 0.6, "ground_friction": 0.3}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    data = generate(SCENE, "compliant", 12_288, tmp_path_factory.mktemp("data"))
    return train(SCENE, "compliant", data, steps=700)


@pytest.fixture(scope="module")
def impacts():
    """Outcomes of the analytic teacher, with one per cent noise and a block that springs less on its right."""
    rng = np.random.default_rng(4)
    strikes = sample_strikes(SCENE, 110, rng)
    frames = contact_frames(SCENE, strikes)
    from carom.engines.compliant import simulate

    parameters = SCENE.parameters("compliant")
    values = np.tile(defaults(parameters), (110, 1))
    for name, value in TRUE.items():
        values[:, [p.name for p in parameters].index(name)] = value
    local = simulate(SCENE, frames, parameters, values)
    local *= 1 - 0.06 * np.sign(frames.point[:, :1]) + 0.01 * rng.standard_normal((110, 1))
    post = to_world(SCENE, frames, local)
    return Impacts(strikes, post, np.full((110, 3), 0.003), tuple(f"hit_{i:03d}.csv" for i in range(110)))


def accuracy(model, test):
    error = relative_error(model.predict(test.strikes).post, test.post, SCENE.gyration_radius)
    return summary(error)["accuracy@0.1"]


def explained(model):
    """The explanation by the teacher that the base model learned from."""
    return next(e for e in model.explanations if e.base.teacher == "compliant")


def test_ten_impacts_correct_what_no_parameter_can_express(base, impacts):
    train_set, test = impacts[np.arange(10)], impacts[np.arange(10, 110)]
    model = adapt([base], train_set)
    assert accuracy(model, test) > 0.85
    fewer = adapt([base], impacts[np.arange(3)])
    assert accuracy(model, test) >= accuracy(fewer, test) - 0.05


def test_stated_uncertainty_is_calibrated(base, impacts):
    train_set, test = impacts[np.arange(10)], impacts[np.arange(10, 110)]
    predicted = adapt([base], train_set).predict(test.strikes)
    inside = coverage(predicted.post, predicted.post_std, test.post)
    assert 0.75 < inside["coverage@0.9"] <= 1.0
    assert 0.3 < inside["coverage@0.5"] < 0.85


def test_members_find_the_parameters_that_matter(base, impacts):
    members = explained(adapt([base], impacts[np.arange(20)])).members
    names = [p.name for p in base.parameters]
    for name, tolerance in (("restitution", 0.15), ("striker_friction", 0.12)):
        mean = float(members.weights @ members.values[:, names.index(name)])
        assert abs(mean - TRUE[name]) < tolerance, name


def test_fixed_parameters_stay_fixed(base, impacts):
    members = explained(adapt([base], impacts[np.arange(10)], fixed={"ground_friction": 0.3})).members
    column = [p.name for p in base.parameters].index("ground_friction")
    assert np.all(members.values[:, column] == 0.3)


def test_parameters_known_with_an_error_stay_about_it(base, impacts):
    column = [p.name for p in base.parameters].index("com_x")
    loose, tight = (
        explained(adapt([base], impacts[np.arange(10)], fixed={"com_x": (1e-3, std)})).members for std in (1e-2, 1e-4)
    )
    assert np.abs(tight.values[:, column] - 1e-3).max() < 5e-4
    assert loose.values[:, column].std() > 5 * tight.values[:, column].std()
    edge = base.parameters[column].high
    beyond = explained(adapt([base], impacts[np.arange(10)], fixed={"com_x": (2 * edge, 1e-4)})).members
    assert beyond.values[:, column].max() <= edge


def test_hypotheses_are_averaged_by_their_weights(base, impacts):
    """A model whose weight lies on one hypothesis says what that one says; with two, the mean lies between."""
    train_set, test = impacts[np.arange(10)], impacts[np.arange(10, 40)]
    model = adapt([base], train_set)
    one, other = (replace(model, weights=np.eye(len(model.weights))[i]).predict(test.strikes) for i in (0, 1))
    both = replace(model, weights=0.5 * (np.eye(len(model.weights))[0] + np.eye(len(model.weights))[1]))
    mixed = both.predict(test.strikes)
    low, high = np.minimum(one.post, other.post) - 1e-9, np.maximum(one.post, other.post) + 1e-9
    assert ((mixed.post >= low) & (mixed.post <= high)).all()
    smaller = np.minimum(one.post_std, other.post_std)
    assert (mixed.post_std >= smaller - 1e-9).all()


def test_physics_that_is_right_carries_the_weight(base, impacts):
    """The truth is a blow on springs, which a rigid impact resembles: the strikes alone count for little."""
    model = adapt([base], impacts[np.arange(20)])
    assert model.weights.sum() == pytest.approx(1.0)
    assert model.teachers[ALONE] < 0.1
    assert all("no physics" not in words for words in model.reasons)


def test_strikes_that_no_teacher_explains_are_left_to_the_strikes_alone(base, impacts):
    """A target on which every blow has the same outcome over speed, whatever teachers say: the mean has it."""
    post = np.column_stack([0.7 * impacts.strikes.striker_velocity[:, :2], np.full(110, 0.4)])
    odd = replace(impacts, post=post)
    test = odd[np.arange(10, 110)]
    model = adapt([base], odd[np.arange(10)])
    assert model.teachers[ALONE] > 0.5
    assert accuracy(model, test) > 0.95


def test_a_strike_that_was_read_wrongly_is_named_and_not_learned_from(base, impacts):
    """A slide so short that its velocity was read as nothing: the others are predicted as without it."""
    post = impacts.post.copy()
    post[4] *= 0.05
    spoiled = replace(impacts, post=post)
    test = impacts[np.arange(10, 110)]
    model, without = adapt([base], spoiled[np.arange(10)]), adapt([base], impacts[np.delete(np.arange(10), 4)])
    assert model.odd == ("hit_004.csv",)
    assert any("hit_004.csv" in line for line in model.words)
    assert accuracy(model, test) > accuracy(without, test) - 0.05
    assert adapt([base], impacts[np.arange(10)]).odd == ()


def test_strikes_outside_of_what_was_learned_do_without_the_networks(base, impacts):
    """Ten times as fast as anything simulated: base models are left out, and strikes are called unknown."""
    fast = replace(impacts.strikes, striker_velocity=10 * impacts.strikes.striker_velocity)
    outside = replace(impacts, strikes=fast, post=10 * impacts.post)
    model = adapt([base], outside[np.arange(10)])
    assert set(model.teachers) == {"rigid", ALONE}
    said = model.predict(fast[np.arange(10, 20)])
    assert (said.known == 0).all()
    assert np.isfinite(said.post).all()


def test_a_blow_that_is_weaker_at_one_place_is_learned_there(base, impacts):
    """Six per cent less on the right: the smooth correction beats the teacher as it is."""
    model = adapt([base], impacts[np.arange(30)])
    test = impacts[np.arange(30, 110)]
    plain = next(i for i, h in enumerate(model.hypotheses) if h.correction == "as it is")
    bare = replace(model, weights=np.eye(len(model.weights))[plain])
    off = [relative_error(m.predict(test.strikes).post, test.post, SCENE.gyration_radius).mean() for m in (model, bare)]
    assert off[0] < off[1]


def test_prediction_follows_the_target_wherever_it_stands(base, impacts):
    """Turning and moving a whole strike turns its outcome."""
    model = adapt([base], impacts[np.arange(10)])
    strikes = impacts.strikes[np.arange(10, 30)]
    angle = 0.9
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])

    def moved(rows, shift):
        return np.column_stack([rows[:, :2] @ turn.T + shift, rows[:, 2]])

    far = replace(
        strikes,
        target_pose=moved(strikes.target_pose, [0.4, -1.0]) + np.array([0, 0, angle]),
        striker_pose=moved(strikes.striker_pose, [0.4, -1.0]) + np.array([0, 0, angle]),
        striker_velocity=moved(strikes.striker_velocity, 0.0),
    )
    here, there = model.predict(strikes).post, model.predict(far).post
    np.testing.assert_allclose(there[:, :2], here[:, :2] @ turn.T, atol=2e-5)
    np.testing.assert_allclose(there[:, 2], here[:, 2], atol=1e-3)


def test_same_seed_same_model(base, impacts):
    first, second = (adapt([base], impacts[np.arange(10)], seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.best.members.values, second.best.members.values)
    np.testing.assert_array_equal(first.weights, second.weights)


def test_models_survive_the_disk(base, impacts, tmp_path):
    test = impacts[np.arange(10, 40)]
    for kind in ("default", "paper"):
        model = (
            adapt([base], impacts[np.arange(10)])
            if kind == "default"
            else fine_tune(base, impacts[np.arange(10)], defaults(base.parameters))
        )
        save_model(tmp_path / kind, model, made_by={"command": "test"})
        again = load_model(tmp_path / kind)
        np.testing.assert_allclose(again.predict(test.strikes).post, model.predict(test.strikes).post, atol=1e-9)
        np.testing.assert_allclose(
            again.predict(test.strikes).post_std, model.predict(test.strikes).post_std, atol=1e-9
        )


def test_damaged_or_foreign_models_are_refused(base, impacts, tmp_path):
    folder = tmp_path / "model"
    with pytest.raises(ModelError, match="holds no impact model"):
        load_model(folder)
    save_model(folder, adapt([base], impacts[np.arange(10)]), made_by={})
    header = (folder / "model.json").read_text()
    (folder / "model.json").write_text(header.replace('"length": "m"', '"length": "mm"'))
    with pytest.raises(ModelError, match="is damaged or was edited"):
        load_model(folder)
    reseal(folder / "model.json")
    with pytest.raises(ModelError, match="expected units"):
        load_model(folder)
    (folder / "model.json").write_text(header.replace("carom-impact-model/2", "carom-impact-model/9"))
    with pytest.raises(ModelError, match="expected format carom-impact-model/2, got carom-impact-model/9"):
        load_model(folder)
    (folder / "model.json").write_text(header.replace('"weighed laws"', '"mixture"'))
    reseal(folder / "model.json")
    with pytest.raises(ModelError, match="corrected by another version of Carom"):
        load_model(folder)
    (folder / "model.json").write_text(header)
    (folder / "correction.safetensors").write_bytes(b"\x00" * 40)
    with pytest.raises(ModelError, match=r"correction.safetensors is damaged"):
        load_model(folder)


def test_fine_tuning_moves_towards_the_impacts(base, impacts):
    train_set = impacts[np.arange(10)]
    values = defaults(base.parameters)
    before, after = (fine_tune(base, train_set, values, steps=n) for n in (0, 100))
    errors = [
        np.mean(relative_error(m.predict(train_set.strikes).post, train_set.post, SCENE.gyration_radius))
        for m in (before, after)
    ]
    assert errors[1] < errors[0]


def test_too_few_impacts(base, impacts):
    with pytest.raises(CaromError, match="2 usable impacts are too few"):
        adapt([base], impacts[np.arange(2)])


def test_hypotheses_that_add_nothing_are_not_learned_and_not_missed(base, impacts):
    """Of hundreds of strikes each would hold a matrix of their square; the others answer where networks may not."""
    model = adapt([base], impacts[np.arange(10)])
    weights = model.weights.copy()
    lost = np.argsort(weights)[: len(weights) // 2]
    some, few = weights.copy(), weights.copy()
    some[lost], few[lost] = 0.0, 1e-40
    test = impacts[np.arange(10, 20)].strikes
    slow = replace(test, striker_velocity=0.1 * test.striker_velocity)  # networks have not learned these
    counting = replace(model, weights=few)
    assert len(counting._learned) < len(model._learned)
    np.testing.assert_array_equal(counting.predict(test).post, replace(model, weights=some).predict(test).post)
    alone = replace(model, weights=np.where([h.teacher == "compliant" for h in model.hypotheses], 1.0, 1e-30))
    assert np.isfinite(alone.predict(slow).post).all()
    assert not alone.predict(slow).known.any()
