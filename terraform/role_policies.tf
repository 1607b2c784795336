locals {
  class_requested = "s3:RequestObjectTag/${local.retention.tag}"
  class_there     = "s3:ExistingObjectTag/${local.retention.tag}"
  class_alone     = { "s3:RequestObjectTagKeys" = [local.retention.tag] } # a rule of somebody else's may look for other tags

  versions_too = ["s3:GetObject", "s3:GetObjectVersion"]
  tags_too     = ["s3:GetObjectTagging", "s3:GetObjectVersionTagging"]
  every_run    = [for kind in ["records", "bundles", "effects", "notes", "audit", "index"] : "${local.objects}${kind}/*"]

  # What `doctor` looks at; none of it shows anything of a run.
  looks = {
    Sid    = "LooksAtTheBucket"
    Effect = "Allow"
    Action = [
      "s3:GetBucketLocation", "s3:GetBucketObjectLockConfiguration", "s3:GetBucketPolicyStatus", "s3:GetBucketPublicAccessBlock",
      "s3:GetBucketVersioning", "s3:GetEncryptionConfiguration", "s3:GetLifecycleConfiguration",
    ]
    Resource = local.bucket_arn
  }

  other_regions = {
    Sid       = "OnlyAllowedRegions"
    Effect    = "Deny"
    Action    = ["s3:*", "kms:*"]
    Resource  = "*"
    Condition = { StringNotEquals = { "aws:RequestedRegion" = local.regions } }
  }

  # The id of the store, which is all that a writer reads; it is no secret.
  names_store = {
    Sid      = "ReadsTheNameOfTheStore"
    Effect   = "Allow"
    Action   = local.versions_too
    Resource = "${local.objects}store.json"
  }

  # `doctor` looks whether each object has a class.
  reads_its_class = {
    Sid      = "ReadsTheClassOfItsName"
    Effect   = "Allow"
    Action   = local.tags_too
    Resource = "${local.objects}store.json"
  }

  lists = {
    Sid       = "ListsTheStore"
    Effect    = "Allow"
    Action    = ["s3:ListBucket", "s3:ListBucketVersions"]
    Resource  = local.bucket_arn
    Condition = { StringLike = { "s3:prefix" = ["${local.keys}*"] } }
  }

  # For readers "if it is there": S3 asks for s3:ListBucket, with no prefix, before it says of an object that it is not
  # there. Without it a bundle that has expired could not be told from one that may not be read.
  lists_and_misses = {
    Sid       = "ListsTheStore"
    Effect    = "Allow"
    Action    = ["s3:ListBucket", "s3:ListBucketVersions"]
    Resource  = local.bucket_arn
    Condition = { StringLikeIfExists = { "s3:prefix" = ["${local.keys}*"] } }
  }

  lists_uploads = {
    Sid      = "ListsUploads"
    Effect   = "Allow"
    Action   = ["s3:ListBucketMultipartUploads"] # has no condition on the prefix
    Resource = local.bucket_arn
  }

  # Creation. That a name is new, the bucket's policy demands of everybody.
  creates = [
    {
      Sid      = "Creates"
      Effect   = "Allow"
      Action   = ["s3:PutObject", "s3:AbortMultipartUpload"]
      Resource = [for kind in ["bundles", "records", "effects", "index"] : "${local.objects}${kind}/*"]
    },
    # The classes of a run that goes on, and of one that has ended; `init` and `doctor` try a store with objects `live`.
    {
      Sid      = "CreatesLiveOrFinal"
      Effect   = "Allow"
      Action   = ["s3:PutObjectTagging"]
      Resource = concat(["${local.objects}bundles/*"], [for run in local.probes : "${local.objects}effects/${run}/*"])
      Condition = {
        StringEquals                = { (local.class_requested) = ["live", "success", "failure"] }
        "ForAllValues:StringEquals" = local.class_alone
      }
    },
    {
      Sid      = "CreatesRecords"
      Effect   = "Allow"
      Action   = ["s3:PutObjectTagging"]
      Resource = [for kind in ["records", "effects", "index"] : "${local.objects}${kind}/*"]
      Condition = {
        StringEquals                = { (local.class_requested) = ["record"] }
        "ForAllValues:StringEquals" = local.class_alone
      }
    },
    # A new object has no class yet; what has one is not given another.
    {
      Sid       = "RetagsNothing"
      Effect    = "Deny"
      Action    = ["s3:PutObjectTagging", "s3:PutObjectVersionTagging"]
      Resource  = "${local.bucket_arn}/*"
      Condition = { Null = { (local.class_there) = "false" } }
    },
  ]

  role_statements = {
    archiver = concat(local.creates, [local.names_store, local.lists, local.lists_uploads])

    runner = concat(local.creates, [
      local.names_store,
      local.reads_its_class,
      local.lists_and_misses,
      local.lists_uploads,
      {
        Sid      = "ReadsRuns"
        Effect   = "Allow"
        Action   = concat(local.versions_too, local.tags_too)
        Resource = local.every_run
      },
      {
        Sid      = "LeavesAudit"
        Effect   = "Allow"
        Action   = ["s3:PutObject"]
        Resource = "${local.objects}audit/*"
      },
      {
        Sid      = "LeavesAuditAsRecords"
        Effect   = "Allow"
        Action   = ["s3:PutObjectTagging"]
        Resource = "${local.objects}audit/*"
        Condition = {
          StringEquals                = { (local.class_requested) = ["record"] }
          "ForAllValues:StringEquals" = local.class_alone
        }
      },
    ])

    sweeper = concat(
      # Without its Deny, which would be one on the sweeper's own work.
      [for one in local.creates : one if var.sweeper_archives && one.Effect == "Allow"],
      [for one in [local.lists_uploads] : one if var.sweeper_archives],
      [
        local.names_store,
        local.lists_and_misses,
        {
          Sid      = "ReadsRecordsAndNotes"
          Effect   = "Allow"
          Action   = local.versions_too
          Resource = ["${local.objects}records/*", "${local.objects}notes/*"]
        },
        {
          Sid      = "ReadsClasses"
          Effect   = "Allow"
          Action   = local.tags_too
          Resource = "${local.objects}*"
        },
        {
          Sid       = "ChangesClassesOfBundles"
          Effect    = "Allow"
          Action    = ["s3:PutObjectTagging", "s3:PutObjectVersionTagging"]
          Resource  = "${local.objects}bundles/*"
          Condition = local.emulated ? null : { StringEquals = { (local.class_requested) = ["live", "intermediate", "success", "failure"] } }
        },
        {
          Sid       = "NeverTakesHold"
          Effect    = "Deny"
          Action    = ["s3:PutObjectTagging", "s3:PutObjectVersionTagging"]
          Resource  = "${local.bucket_arn}/*"
          Condition = { StringEquals = { (local.class_there) = "hold" } }
        },
        {
          Sid       = "NeverGivesHold"
          Effect    = "Deny"
          Action    = ["s3:PutObjectTagging", "s3:PutObjectVersionTagging"]
          Resource  = "${local.bucket_arn}/*"
          Condition = { StringEquals = { (local.class_requested) = "hold" } }
        },
      ],
    )

    restorer = [
      local.names_store,
      local.reads_its_class,
      local.lists_and_misses,
      {
        Sid      = "ReadsRuns"
        Effect   = "Allow"
        Action   = concat(local.versions_too, local.tags_too)
        Resource = local.every_run
      },
    ]

    administrator = [
      local.lists_and_misses,
      local.lists_uploads,
      {
        Sid    = "AdministersObjects"
        Effect = "Allow"
        Action = [
          "s3:AbortMultipartUpload", "s3:DeleteObject", "s3:DeleteObjectVersion", "s3:GetObject", "s3:GetObjectLegalHold",
          "s3:GetObjectRetention", "s3:GetObjectTagging", "s3:GetObjectVersion", "s3:GetObjectVersionTagging", "s3:PutObject",
          "s3:PutObjectTagging", "s3:PutObjectVersionTagging",
        ]
        Resource = "${local.objects}*"
      },
      {
        Sid      = "AdministersRules"
        Effect   = "Allow"
        Action   = ["s3:PutLifecycleConfiguration"]
        Resource = local.bucket_arn
      },
    ]
  }
}
